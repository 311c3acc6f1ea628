// TrialToken: the token that was fetched for one trial, as those see it who show it: its writers, uploads, streams. Thread-safe;
// waits for nobody.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/agent/ready_set.h"

namespace stepwell::agent {

class TrialToken {
 public:
  struct Shown {
    std::string text = {};  // empty: none is there; what would be shown without this
    std::uint64_t version = 0;
  };
  Shown shown() const ABSL_LOCKS_EXCLUDED(mu_) {
    const absl::MutexLock lock(&mu_);
    return {text_, version_.load()};
  }
  // Grows with each change.
  std::uint64_t version() const { return version_.load(std::memory_order_relaxed); }
  // Set at each change, as long as somebody else has it.
  void Watch(const std::shared_ptr<ReadyMark>& mark) ABSL_LOCKS_EXCLUDED(mu_) {
    const absl::MutexLock lock(&mu_);
    std::erase_if(marks_, [](const auto& known) { return known.expired(); });
    marks_.push_back(mark);
  }
  // A master refused it, as unknown or ended: whoever fetches hears of it.
  void Reject(const std::string& text) ABSL_LOCKS_EXCLUDED(mu_) {
    const absl::MutexLock lock(&mu_);
    if (!text.empty() && text == text_) rejected_ = text;
  }

  // Of who fetches.
  void Set(const std::string& text) ABSL_LOCKS_EXCLUDED(mu_) {
    const absl::MutexLock lock(&mu_);
    if (text == text_) return;
    text_ = text;
    ++version_;
    for (const std::weak_ptr<ReadyMark>& watching : marks_) {
      if (const auto mark = watching.lock()) mark->Set();
    }
  }
  std::string TakeRejected() ABSL_LOCKS_EXCLUDED(mu_) {
    const absl::MutexLock lock(&mu_);
    return std::exchange(rejected_, "");
  }

 private:
  mutable absl::Mutex mu_;
  std::string text_ ABSL_GUARDED_BY(mu_);
  std::string rejected_ ABSL_GUARDED_BY(mu_);
  std::vector<std::weak_ptr<ReadyMark>> marks_ ABSL_GUARDED_BY(mu_);
  std::atomic<std::uint64_t> version_{0};
};

}  // namespace stepwell::agent
