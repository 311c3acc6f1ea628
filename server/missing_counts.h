// MissingCounts: what is missing for good of what was sent, as chunks were committed: gaps by their cause, and
// what was rejected by its reason. Thread-safe; asked for by chunks alone that have any.
//
//   stats.missing.AddGaps(chunk.gaps);
//   stats.missing.AddRejected(chunk.rejected->complaint.reason, chunk.rejected->sample_count);
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "storage/model.h"

namespace stepwell {

class MissingCounts {
 public:
  // Reasons are words of ours, of which there are some fifty; were there ever more they are one, "OTHER".
  static constexpr std::size_t kReasonsMax = 128;

  static constexpr std::size_t kCauseMax = static_cast<std::size_t>(GapCause::kRestored);

  struct Count {
    // Gaps, or chunks.
    std::uint64_t count = 0;
    // Of those that say how many.
    std::uint64_t sample_count = 0;
  };

  void AddGaps(const std::vector<Gap>& gaps);
  // A chunk, or columns of one; 0 samples where nobody could read how many there were.
  void AddRejected(const std::string& reason, std::int64_t sample_count) ABSL_LOCKS_EXCLUDED(mu_);

  Count Gaps(GapCause cause) const;
  std::map<std::string, Count> Rejected() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Counter {
    std::atomic<std::uint64_t> count{0};
    std::atomic<std::uint64_t> sample_count{0};
  };
  // By cause; the first is of none.
  std::array<Counter, kCauseMax + 1> gaps_ = {};
  mutable absl::Mutex mu_;
  std::map<std::string, Count> rejected_ ABSL_GUARDED_BY(mu_);
};

}  // namespace stepwell
