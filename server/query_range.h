// QueryRange: the ranges of time and of batches that a query asks for, checked, and what heads span
// where a range has an open end. A core; pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "server/batch_attempts.h"
#include "server/heads.h"
#include "stepwell/v1/model.pb.h"
#include "storage/read_store.h"

namespace stepwell {

// [start, end); INT64_MIN and INT64_MAX are open ends.
struct TimeBounds {
  std::int64_t start_us = INT64_MIN;
  std::int64_t end_us = INT64_MAX;

  bool Holds(std::int64_t time_us) const { return time_us >= start_us && time_us < end_us; }
  // For GapFilter: both 0 where both ends are open.
  std::int64_t GapFirst() const;
  std::int64_t GapLast() const;
};

// kInvalidArgument naming the field when the end lies before the start.
[[nodiscard]] absl::StatusOr<TimeBounds> CheckTimeRange(const v1::TimeRange& range_untrusted);
// An open end stays 0.
[[nodiscard]] absl::StatusOr<v1::BatchRange> CheckBatchRange(const v1::BatchRange& range_untrusted);

// [start, end) of batches; by default no bound: samples without batch, too.
struct BatchBounds {
  bool is_bound = false;
  std::int32_t start = 0;
  std::int32_t end = INT32_MAX;

  bool Holds(std::int32_t batch) const { return !is_bound || (batch >= start && batch < end); }
};

// Of a range that was given; an error as of CheckBatchRange.
[[nodiscard]] absl::StatusOr<BatchBounds> CheckBatchBounds(const v1::BatchRange& range_untrusted);

// Times of the first and the last sample of a table, both inclusive; nothing where it has none. A tick
// that no column has a sample of does not count.
struct SampleTimes {
  std::int64_t first_us = 0;
  std::int64_t last_us = 0;
};
std::optional<SampleTimes> SampleTimesOf(const TickTable& table);

// First and last time of what is stored of `groups`, and of what heads have of `series_nos`, which are sorted; empty
// (start == end) if nothing.
TimeBounds SpanOf(const std::vector<UsageRecord>& usage, const std::vector<HeadChunkPtr>& chunks,
                  const std::vector<std::string>& groups,
                  const std::vector<std::int32_t>& series_nos);

// The batches of each attempt, stored and in heads.
BatchAttempts AttemptsOf(const std::vector<WriterBatches>& stored,
                         const std::vector<WriterRecord>& writers,
                         const std::vector<HeadChunkPtr>& chunks);

}  // namespace stepwell
