#include "server/followed_samples.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace stepwell {
namespace {

void Append(const TickTable& table, const TickColumn& column, std::int32_t attempt,
            v1::FollowSamplesResponse::SeriesSamples& into) {
  std::size_t value = 0;
  for (std::size_t tick = 0; tick < table.times_us.size(); ++tick) {
    if (!column.presence.empty() && column.presence[tick] == 0) continue;
    STEPWELL_CHECK(value < column.values.size());
    into.add_timestamps_us(table.times_us[tick]);
    into.add_batches(table.batches[tick]);
    into.add_values(column.values[value++]);
    into.add_attempts(attempt);
  }
}

}  // namespace

void FollowedSamples::Add(const HeadChunk& chunk, const SeriesChoice& choice) {
  for (const TickTable& table : chunk.tables) {
    for (const TickColumn& column : table.columns) {
      if (column.values.empty() || !choice.Holds(column.series_no)) continue;
      auto& samples = series_[Value(column.series_no)];
      samples.set_series_no(Value(column.series_no));
      Append(table, column, chunk.attempt, samples);
      sample_count_ += static_cast<std::int64_t>(column.values.size());
    }
  }
}

void FollowedSamples::MoveTo(v1::FollowSamplesResponse& response) {
  for (auto& [series_no, samples] : series_) {
    const auto& attempts = samples.attempts();
    if (std::all_of(attempts.begin(), attempts.end(),
                    [&](std::int32_t attempt) { return attempt == attempts[0]; })) {
      samples.mutable_attempts()->Truncate(1);
    }
    *response.add_samples() = std::move(samples);
  }
  series_.clear();
  sample_count_ = 0;
}

}  // namespace stepwell
