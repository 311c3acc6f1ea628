#include "server/missing_counts.h"

#include "base/check.h"

namespace stepwell {
namespace {

std::size_t IndexOf(GapCause cause) {
  const auto index = static_cast<std::size_t>(cause);
  STEPWELL_CHECK(index <= MissingCounts::kCauseMax);
  return index;
}

}  // namespace

void MissingCounts::AddGaps(const std::vector<Gap>& gaps) {
  for (const Gap& gap : gaps) {
    Counter& counter = gaps_[IndexOf(gap.cause)];
    counter.count.fetch_add(1, std::memory_order_relaxed);
    counter.sample_count.fetch_add(static_cast<std::uint64_t>(gap.sample_count),
                                   std::memory_order_relaxed);
  }
}

void MissingCounts::AddRejected(const std::string& reason, std::int64_t sample_count) {
  absl::MutexLock lock(&mu_);
  const bool is_one_too_many = rejected_.size() >= kReasonsMax && !rejected_.contains(reason);
  Count& rejected = rejected_[is_one_too_many ? "OTHER" : reason];
  ++rejected.count;
  rejected.sample_count += static_cast<std::uint64_t>(sample_count);
}

MissingCounts::Count MissingCounts::Gaps(GapCause cause) const {
  const Counter& counter = gaps_[IndexOf(cause)];
  return {counter.count.load(std::memory_order_relaxed),
          counter.sample_count.load(std::memory_order_relaxed)};
}

std::map<std::string, MissingCounts::Count> MissingCounts::Rejected() const {
  absl::MutexLock lock(&mu_);
  return rejected_;
}

}  // namespace stepwell
