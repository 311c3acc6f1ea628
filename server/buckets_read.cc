#include "server/buckets_read.h"

#include <cmath>
#include <utility>

#include "base/status_macros.h"
#include "server/query_wire.h"
#include "server/sample_stream.h"

namespace stepwell {

BucketsRead::BucketsRead(const BucketPlan& plan, const std::vector<SeriesGroup>& groups,
                         const HeadSamples& heads, const BatchAttempts* attempts,
                         const TrialView& view)
    : plan_(plan), groups_(groups), heads_(heads), attempts_(attempts), view_(view) {
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (const SeriesNo series_no : groups[i].series_nos) group_of_[series_no] = i;
    left_.push_back(groups[i].series_nos.size());
  }
}

void BucketsRead::OnRollup(const StoredRollup& rollup) {
  BucketFold& fold = FoldOf(rollup.series_no);
  const RollupGrid& grid = *rollup.grid;
  const RollupColumn& column = rollup.column;
  const std::int64_t step_us = INT64_C(1'000'000) * grid.step_seconds;
  std::size_t at = 0;
  for (std::size_t i = 0; i < grid.buckets.size(); ++i) {
    if (!column.presence.empty() && column.presence[i] == 0) continue;
    const std::size_t own = at++;
    const std::int64_t place = grid.buckets[i] * step_us;
    if (!plan_.Holds(place)) continue;
    const std::int64_t count = column.counts.empty() ? grid.tick_counts[i] : column.counts[own];
    const std::int64_t nan_count = column.nan_counts.empty() ? 0 : column.nan_counts[own];
    const std::int64_t lag_us = column.last_lags_us.empty() ? 0 : column.last_lags_us[own];
    fold.AddPart(place,
                 {.last_time_us = grid.last_times_us[i] - lag_us,
                  .min = column.mins[own],
                  .max = column.maxs[own],
                  .sum = column.sums[own],
                  .last = column.lasts[own],
                  .count = static_cast<std::uint64_t>(count - nan_count)},
                 static_cast<std::uint64_t>(nan_count));
  }
}

absl::Status BucketsRead::OnRow(const StoredRow& row) {
  BucketFold& fold = FoldOf(row.series_no);
  if (BucketFold::CanAddRow(plan_, row.first_time_us, row.last_time_us, row.nan_count)) {
    fold.AddRow({.first_time_us = row.first_time_us,
                 .last_time_us = row.last_time_us,
                 .min = row.min,
                 .max = row.max,
                 .sum = row.sum,
                 .last = row.last,
                 .count = static_cast<std::uint64_t>(row.sample_count)});
    return absl::OkStatus();
  }
  STEPWELL_ASSIGN_OR_RETURN(const SampleRun run, RunOfRow(row, view_.AttemptOf(row.writer_no)));
  AddRun(run, fold);
  return absl::OkStatus();
}

absl::Status BucketsRead::OnSeriesEnd(SeriesNo series_no) {
  AddRun(heads_.Run(series_no), FoldOf(series_no));
  const std::size_t group = group_of_.at(series_no);
  if (--left_[group] == 0) {
    Write(group);
    folds_.erase(group);
  }
  return absl::OkStatus();
}

void BucketsRead::MoveTo(v1::QueryBucketsResponse& response) {
  for (auto& [group, series] : written_) *response.add_series() = std::move(series);
}

BucketFold& BucketsRead::FoldOf(SeriesNo series_no) {
  return folds_.try_emplace(group_of_.at(series_no), plan_).first->second;
}

void BucketsRead::AddRun(const SampleRun& run, BucketFold& fold) const {
  for (const Sample& sample : run) {
    if (attempts_ != nullptr && !attempts_->Counts(sample.attempt, sample.batch)) continue;
    fold.AddSample(sample.time_us, sample.batch, sample.value);
  }
}

void BucketsRead::Write(std::size_t group) {
  const std::vector<Bucket>& buckets = folds_.at(group).buckets();
  v1::QueryBucketsResponse::BucketSeries series;
  bool any_nan = false;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    const Bucket& bucket = buckets[i];
    if (bucket.count == 0 && bucket.nan_count == 0) continue;
    const double none = std::nan("");
    series.add_indexes(static_cast<std::uint32_t>(i));
    series.add_mins(bucket.count > 0 ? bucket.min : none);
    series.add_maxs(bucket.count > 0 ? bucket.max : none);
    series.add_means(bucket.count > 0 ? bucket.mean() : none);
    series.add_lasts(bucket.count > 0 ? bucket.last : none);
    series.add_counts(bucket.count);
    series.add_nan_counts(bucket.nan_count);
    any_nan |= bucket.nan_count > 0;
  }
  if (series.indexes_size() == 0) return;
  if (!any_nan) series.clear_nan_counts();
  *series.mutable_key() = ToWire(groups_[group].key);
  series.set_unit(groups_[group].unit);
  series.set_kind(static_cast<v1::SeriesKind>(groups_[group].kind));
  for (const SeriesNo series_no : groups_[group].series_nos) {
    series.add_series_nos(Value(series_no));
  }
  written_[group] = std::move(series);
}

}  // namespace stepwell
