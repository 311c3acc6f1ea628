#include "server/query_range.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace stepwell {

std::int64_t TimeBounds::GapFirst() const {
  return start_us == INT64_MIN && end_us == INT64_MAX ? 0 : start_us;
}
std::int64_t TimeBounds::GapLast() const {
  return start_us == INT64_MIN && end_us == INT64_MAX ? 0 : end_us;
}

absl::StatusOr<TimeBounds> CheckTimeRange(const v1::TimeRange& range_untrusted) {
  TimeBounds bounds;
  if (range_untrusted.start_time_us() != 0) bounds.start_us = range_untrusted.start_time_us();
  if (range_untrusted.end_time_us() != 0) bounds.end_us = range_untrusted.end_time_us();
  if (bounds.end_us < bounds.start_us) {
    return absl::InvalidArgumentError(absl::StrCat("time_range.end_time_us is ", bounds.end_us,
                                                   "; allowed: 0, or start_time_us (",
                                                   bounds.start_us, ") and above"));
  }
  return bounds;
}

absl::StatusOr<v1::BatchRange> CheckBatchRange(const v1::BatchRange& range_untrusted) {
  if (range_untrusted.start_batch() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "batch_range.start_batch is ", range_untrusted.start_batch(), "; allowed: 0 and above"));
  }
  if (range_untrusted.end_batch() != 0 &&
      range_untrusted.end_batch() < range_untrusted.start_batch()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "batch_range.end_batch is ", range_untrusted.end_batch(), "; allowed: 0, or start_batch (",
        range_untrusted.start_batch(), ") and above"));
  }
  return range_untrusted;
}

absl::StatusOr<BatchBounds> CheckBatchBounds(const v1::BatchRange& range_untrusted) {
  STEPWELL_ASSIGN_OR_RETURN(const v1::BatchRange range, CheckBatchRange(range_untrusted));
  return BatchBounds{.is_bound = true,
                     .start = range.start_batch(),
                     .end = range.end_batch() == 0 ? INT32_MAX : range.end_batch()};
}

namespace {

using Columns = std::vector<const TickColumn*>;

std::optional<SampleTimes> TimesOf(const TickTable& table, const Columns& columns) {
  const auto has_all = [](const TickColumn* column) { return column->presence.empty(); };
  const bool all = std::any_of(columns.begin(), columns.end(), has_all);
  std::optional<SampleTimes> times;
  for (std::size_t tick = 0; tick < table.times_us.size(); ++tick) {
    const auto has_sample = [&](const TickColumn* column) { return column->presence[tick] != 0; };
    if (!all && std::none_of(columns.begin(), columns.end(), has_sample)) continue;
    const std::int64_t time_us = table.times_us[tick];
    if (!times) times = {.first_us = time_us, .last_us = time_us};
    times->first_us = std::min(times->first_us, time_us);
    times->last_us = std::max(times->last_us, time_us);
  }
  return times;
}

}  // namespace

std::optional<SampleTimes> SampleTimesOf(const TickTable& table) {
  Columns columns;
  for (const TickColumn& column : table.columns) columns.push_back(&column);
  return TimesOf(table, columns);
}

TimeBounds SpanOf(const std::vector<UsageRecord>& usage, const std::vector<HeadChunkPtr>& chunks,
                  const std::vector<std::string>& groups,
                  const std::vector<std::int32_t>& series_nos) {
  std::int64_t first_us = INT64_MAX;
  std::int64_t last_us = INT64_MIN;
  for (const UsageRecord& line : usage) {
    if (line.sample_count == 0 && line.rollup_byte_count == 0) continue;
    if (std::find(groups.begin(), groups.end(), line.metric_group) == groups.end()) continue;
    first_us = std::min(first_us, line.first_time_us);
    last_us = std::max(last_us, line.last_time_us);
  }
  for (const HeadChunkPtr& chunk : chunks) {
    for (const TickTable& table : chunk->tables) {
      Columns columns;
      for (const TickColumn& column : table.columns) {
        if (std::binary_search(series_nos.begin(), series_nos.end(), Value(column.series_no))) {
          columns.push_back(&column);
        }
      }
      const std::optional<SampleTimes> times = TimesOf(table, columns);
      if (!times) continue;
      first_us = std::min(first_us, times->first_us);
      last_us = std::max(last_us, times->last_us);
    }
  }
  if (first_us > last_us) return {.start_us = 0, .end_us = 0};
  return {.start_us = first_us, .end_us = last_us == INT64_MAX ? last_us : last_us + 1};
}

BatchAttempts AttemptsOf(const std::vector<WriterBatches>& stored,
                         const std::vector<WriterRecord>& writers,
                         const std::vector<HeadChunkPtr>& chunks) {
  BatchAttempts attempts;
  std::map<WriterNo, std::int32_t> attempt_of;
  for (const WriterRecord& writer : writers) attempt_of[writer.writer_no] = writer.attempt;
  for (const WriterBatches& span : stored) {
    attempts.Add(attempt_of[span.writer_no], span.first_batch, span.last_batch);
  }
  for (const HeadChunkPtr& chunk : chunks) {
    for (const TickTable& table : chunk->tables) {
      for (const std::int32_t batch : table.batches) {
        if (batch >= 0) attempts.Add(chunk->attempt, batch, batch);
      }
    }
  }
  return attempts;
}

}  // namespace stepwell
