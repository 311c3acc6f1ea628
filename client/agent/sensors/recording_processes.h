// RecordingProcesses: which processes a trial has here now, for sensors that look at the containers
// they are in. It stands between the agent's loop and the sampling thread. Thread-safe.
#pragma once

#include <sys/types.h>

#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace stepwell::agent {

class RecordingProcesses {
 public:
  void Set(std::vector<pid_t> pids) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    pids_ = std::move(pids);
  }
  std::vector<pid_t> pids() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return pids_;
  }

 private:
  mutable absl::Mutex mu_;
  std::vector<pid_t> pids_ ABSL_GUARDED_BY(mu_);
};

}  // namespace stepwell::agent
