// ReadAdmission: how many reads may run at once, and how many of one payer (PayerOf): half of all, so that
// whoever takes all that it may get, and does not take its answers, leaves the other half to others. While samples wait for
// their commit a quarter of the places is given out: reads are shed before writers, who are never refused for it.
// Thread-safe.
//
//   STEPWELL_ASSIGN_OR_RETURN(ReadAdmission::Ticket ticket, admission.Enter(patience, payer));
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace stepwell {

class ReadAdmission {
 public:
  // Leaves when it goes.
  class Ticket {
   public:
    Ticket(ReadAdmission* admission, std::string payer)
        : admission_(admission), payer_(std::move(payer)) {}
    Ticket(Ticket&& other) noexcept
        : admission_(std::exchange(other.admission_, nullptr)), payer_(std::move(other.payer_)) {}
    Ticket& operator=(Ticket&&) = delete;
    ~Ticket() {
      if (admission_ != nullptr) admission_->Leave(payer_);
    }
    // Gives the place up while `wait` runs and waits for one afterwards. Where too many rest already, or
    // too many of its payer, it keeps the place.
    void RestFor(const std::function<void()>& wait) {
      const bool rests = admission_->Rest(payer_);
      wait();
      if (rests) admission_->Return(payer_);
    }

   private:
    ReadAdmission* admission_;
    std::string payer_;
  };

  // Whether samples wait: asked as a read comes and while it waits, with a lock held.
  using WritersWait = std::function<bool()>;

  // REQUIRES: reads_max > 0.
  explicit ReadAdmission(int reads_max, WritersWait writers_wait = {});

  // Waits for a place for `patience`, then kResourceExhausted. As many may wait as may run, of all and of
  // each payer; more are refused at once. An empty payer is nobody: of it there may be as many as of all.
  absl::StatusOr<Ticket> Enter(absl::Duration patience, const std::string& payer = {});

 private:
  struct Count {
    int running = 0;
    int waiting = 0;
    int resting = 0;
  };
  // Of all, and of one payer.
  int PlacesNow() const;
  bool HasPlace(const std::string& payer, int places) const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  bool MayWait(const std::string& payer) const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  Count CountOf(const std::string& payer) const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  void Add(const std::string& payer, const Count& more) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Leave(const std::string& payer);
  bool Rest(const std::string& payer);
  void Return(const std::string& payer);

  const int reads_max_;
  const int payer_max_;
  const WritersWait writers_wait_;
  absl::Mutex mu_;
  Count all_ ABSL_GUARDED_BY(mu_);
  // Of those that have any.
  absl::flat_hash_map<std::string, Count> payers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace stepwell
