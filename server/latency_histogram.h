// LatencyHistogram: how long things took, counted in fixed buckets. Thread-safe without a lock: to count one
// takes two relaxed additions.
//
//   stats.ack_latency.Observe(SteadyTime::Now() - chunk.checked_time);
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace stepwell {

class LatencyHistogram {
 public:
  // Upper bounds in microseconds, which belong to their bucket, from a commit on a fast disk to what somebody
  // should look at. What is longer than the last one has a bucket of its own. They are a promise: who keeps
  // what was counted compares it by them.
  static constexpr std::array<std::int64_t, 14> kBoundsUs = {
      500,     1'000,   2'500,     5'000,     10'000,    25'000,     50'000,
      100'000, 250'000, 1'000'000, 2'500'000, 5'000'000, 10'000'000, 30'000'000};

  struct Reading {
    // Not cumulative; the last one is beyond all bounds.
    std::array<std::uint64_t, kBoundsUs.size() + 1> counts = {};
    double sum_seconds = 0;
  };

  // Below zero counts as zero.
  void Observe(absl::Duration took) {
    // Rounded up: a bucket holds nothing that was longer than its bound.
    const std::int64_t took_ns = took > absl::ZeroDuration() ? absl::ToInt64Nanoseconds(took) : 0;
    const std::int64_t took_us = took_ns / 1000 + (took_ns % 1000 != 0 ? 1 : 0);
    std::size_t at = 0;
    while (at < kBoundsUs.size() && took_us > kBoundsUs[at]) ++at;
    counts_[at].fetch_add(1, std::memory_order_relaxed);
    // 584 years until it is full.
    sum_ns_.fetch_add(static_cast<std::uint64_t>(took_ns), std::memory_order_relaxed);
  }

  // What was counted until now; of what is counted meanwhile the sum may have more than the buckets, or less.
  Reading Read() const {
    Reading reading;
    for (std::size_t at = 0; at < counts_.size(); ++at) {
      reading.counts[at] = counts_[at].load(std::memory_order_relaxed);
    }
    reading.sum_seconds = static_cast<double>(sum_ns_.load(std::memory_order_relaxed)) * 1e-9;
    return reading;
  }

 private:
  std::array<std::atomic<std::uint64_t>, kBoundsUs.size() + 1> counts_ = {};
  std::atomic<std::uint64_t> sum_ns_{0};
};

}  // namespace stepwell
