// TokenLoop: keeps a TokenGuard's memory of the database's tokens true: asks once a second whether any was made
// or revoked, anywhere, and writes once a minute when they were used. Whoever holds calls open of tokens that
// have ended is told. One thread, "tokens".
//
//   TokenLoop tokens({store, *guard, clock, [&] { registry.ForEachStream(...); }});
//   tokens.Start();
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/worker.h"
#include "server/token_guard.h"
#include "storage/token_store.h"

namespace stepwell {

class TokenLoop {
 public:
  // All outlive this.
  struct Parts {
    TokenStore& store;
    TokenGuard& guard;
    const Clock& clock;
    // Tokens have ended of late: calls and writers of theirs are to end. On the thread.
    std::function<void()> on_ended;
  };
  explicit TokenLoop(Parts parts) : parts_(std::move(parts)) {}
  ~TokenLoop() { Stop(); }

  void Start();
  // Blocks until the thread has ended. Twice is fine.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);
  // What was made or revoked counts when this returns. Thread-safe; asks the database.
  absl::Status LearnNow() ABSL_LOCKS_EXCLUDED(learning_);
  // What was fetched as `id` counts when this returns. Thread-safe; asks the database, but where another call has learned of
  // it meanwhile.
  absl::Status LearnFetchedNow(const std::string& id) ABSL_LOCKS_EXCLUDED(learning_);
  // Those that live and were fetched, as of a second ago.
  std::int64_t fetched_count() const { return parts_.guard.fetched_count(); }
  // It was revoked: it opens nothing any more, also where the database answers by what was so before. Thread-safe, at once.
  // What is open of it is told to end without waiting for the next look.
  void EndNow(const std::string& id) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Run();
  // False when it is time to stop.
  bool WaitForTime() ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Look() ABSL_LOCKS_EXCLUDED(learning_);
  absl::Status Learn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(learning_);
  absl::Status LearnFetched() ABSL_EXCLUSIVE_LOCKS_REQUIRED(learning_);
  void LearnEnded() ABSL_EXCLUSIVE_LOCKS_REQUIRED(learning_);
  void EndDue();
  void TellEnded();
  void NoteUsed();

  const Parts parts_;
  // Held while the database is asked, so that what it said first is not learned last.
  absl::Mutex learning_;
  TokenNumbers numbers_ ABSL_GUARDED_BY(learning_) = {-1, -1};
  bool knows_ended_ ABSL_GUARDED_BY(learning_) = false;
  absl::Mutex mu_ ABSL_ACQUIRED_AFTER(learning_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  bool has_ended_some_ ABSL_GUARDED_BY(mu_) = false;
  // Confined to the thread.
  std::int64_t ended_told_ = 0;
  int tells_left_ = 0;
  bool is_failing_ = false;
  absl::Duration used_noted_ = -absl::InfiniteDuration();
  Worker worker_;
};

}  // namespace stepwell
