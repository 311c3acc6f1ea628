// ReadAdmission: how many reads may run at once. Thread-safe.
//
//   STEPWELL_ASSIGN_OR_RETURN(ReadAdmission::Ticket ticket, admission.Enter(deadline));
#pragma once

#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace stepwell {

class ReadAdmission {
 public:
  // Leaves when it goes.
  class Ticket {
   public:
    explicit Ticket(ReadAdmission* admission) : admission_(admission) {}
    Ticket(Ticket&& other) noexcept : admission_(std::exchange(other.admission_, nullptr)) {}
    Ticket& operator=(Ticket&&) = delete;
    ~Ticket() {
      if (admission_ != nullptr) admission_->Leave();
    }
    // Gives the place up while `wait` runs and waits for one afterwards. Where too many rest already
    // it keeps the place.
    void RestFor(const std::function<void()>& wait) {
      const bool rests = admission_->Rest();
      wait();
      if (rests) admission_->Return();
    }

   private:
    ReadAdmission* admission_;
  };

  // REQUIRES: reads_max > 0.
  explicit ReadAdmission(int reads_max);

  // Waits for a place for `patience`, then kResourceExhausted. As many may wait as may run; more
  // are refused at once.
  absl::StatusOr<Ticket> Enter(absl::Duration patience);

 private:
  void Leave();
  bool Rest();
  void Return();

  const int reads_max_;
  absl::Mutex mu_;
  int running_ ABSL_GUARDED_BY(mu_) = 0;
  int waiting_ ABSL_GUARDED_BY(mu_) = 0;
  int resting_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace stepwell
