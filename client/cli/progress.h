// Progress: a line on stderr that appears once a call takes over 2 s and vanishes at its end, so
// that nobody wonders whether it hangs. Only on a terminal. Owns a thread.
//
//   const Progress progress("reading my-run");
#pragma once

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "base/worker.h"

namespace stepwell::cli {

class Progress {
 public:
  explicit Progress(std::string doing);
  // From now on, until told otherwise. Thread-safe.
  void Say(std::string doing) ABSL_LOCKS_EXCLUDED(mu_);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mu_);

  absl::Mutex mu_;
  std::string doing_ ABSL_GUARDED_BY(mu_);
  absl::Notification done_;
  Worker worker_;
};

}  // namespace stepwell::cli
