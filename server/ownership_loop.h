// OwnershipLoop: one master owns a database. Takes the ownership or stands by, renews it every 2 s,
// and lets go of everything when it is lost: streams end, heads are forgotten. What else the thread does
// between two renewals is cut into pieces that take a fraction of the lease (trial_keeper.h): nobody's
// writers keep it from renewing. Threads "ownership" and, after a take-over, "replay".
#pragma once

#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/steady_time.h"
#include "base/worker.h"
#include "server/commit_group.h"
#include "server/credit_plan.h"
#include "server/owner_lapse.h"
#include "server/recovery.h"
#include "server/trial_keeper.h"
#include "server/writer_director.h"

namespace stepwell {

class OwnershipLoop {
 public:
  struct Options {
    std::string master_id;
    // Where clients find us, for people.
    std::string address;
    // The admin's token, where this start made its file; empty = it was there, or nobody is asked.
    std::string token_file_made = {};
    absl::Duration renew_interval = absl::Seconds(2);
    // How soon a standby sees that nobody owns the database any more.
    absl::Duration standby_interval = absl::Milliseconds(500);
    // Beyond which nobody has credit.
    std::int64_t unfolded_bytes_max = CreditLoad().unfolded_bytes_max;
  };
  struct Parts {
    RecoveryParts recovery;
    CommitQueue& queue;
    TrialKeeper& trial_keeper;
    WriterDirector& director;
    // The role or the database's state may have changed.
    std::function<void()> on_change;
    // It was restored, or is a promoted standby: what is remembered of it is of another one. Before it is owned.
    std::function<void()> on_another_database = [] {};
  };

  OwnershipLoop(Options options, Parts parts)
      : options_(std::move(options)), parts_(std::move(parts)) {}
  ~OwnershipLoop() { Stop(); }

  void Start();
  // Ends the ownership, too: nothing of this master may write any more. Twice is fine.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Run();
  void Renew();
  void LookAtTrials();
  void TellOfToken(const std::string& owner_before);
  void Own(std::int64_t epoch);
  absl::StatusOr<TakenOver> TakeOverAndRenew(std::int64_t epoch);
  void MeetAnotherDatabase(const Uuid& incarnation);
  // `told`: to clients.
  void Lose(absl::string_view why, const char* told);
  void EndStreams(const char* why);
  // The last act of an owner that stops in order: a standby need not wait for the lapse.
  void Release();
  void Replay(std::int64_t epoch, const TakenOver& taken);
  // Tells clients when credit begins or ends to flow.
  void RefreshCredit();
  bool stopping() const ABSL_LOCKS_EXCLUDED(mu_);
  bool Sleep(absl::Duration length) ABSL_LOCKS_EXCLUDED(mu_);

  const Options options_;
  const Parts parts_;
  std::int64_t epoch_ = 0;        // confined to the thread, then to Stop
  std::int64_t last_epoch_ = 0;   // the newest that was ours; confined to the thread
  bool is_token_told_ = false;    // of TellOfToken; confined to the thread
  bool looks_at_trials_ = false;  // some have not had their turn; confined to the thread
  bool credit_flows_ = false;     // confined to the thread
  SteadyTime next_stop_;          // confined to the thread
  OwnerLapse lapse_;              // of another owner; confined to the thread
  mutable absl::Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  Worker worker_;
  Worker replay_;
};

}  // namespace stepwell
