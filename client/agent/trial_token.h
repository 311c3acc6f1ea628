// TrialToken: the token that was fetched for one trial, as those see it who show it: its writers, uploads, streams. Thread-safe;
// waits for nobody.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

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
  }
  std::string TakeRejected() ABSL_LOCKS_EXCLUDED(mu_) {
    const absl::MutexLock lock(&mu_);
    return std::exchange(rejected_, "");
  }

 private:
  mutable absl::Mutex mu_;
  std::string text_ ABSL_GUARDED_BY(mu_);
  std::string rejected_ ABSL_GUARDED_BY(mu_);
  std::atomic<std::uint64_t> version_{0};
};

}  // namespace stepwell::agent
