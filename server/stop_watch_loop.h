// StopWatchLoop: the thread on which a PgStopWatch looks, once a second. One of its own, for a look connects: a name
// that nobody resolves holds it for as long as the resolver likes, and a renewal of the ownership must not wait
// for that. Thread "stop-watch".
//
//   StopWatchLoop loop(database.url, cut);
//   loop.Start();
#pragma once

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/worker.h"
#include "storage/pg_cut.h"
#include "storage/pg_stop_watch.h"

namespace stepwell {

class StopWatchLoop {
 public:
  StopWatchLoop(const std::string& url, std::shared_ptr<PgCut> cut);
  ~StopWatchLoop() { Stop(); }
  StopWatchLoop(const StopWatchLoop&) = delete;
  StopWatchLoop& operator=(const StopWatchLoop&) = delete;

  void Start();
  // Waits for the look under way.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Run();
  // False = it is to stop.
  bool WaitForTime() ABSL_LOCKS_EXCLUDED(mu_);

  PgStopWatch watch_;  // confined to the thread
  absl::Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  Worker worker_;
};

}  // namespace stepwell
