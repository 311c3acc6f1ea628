#include "server/buckets_read.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/status_macros.h"
#include "server/bucket_plan.h"
#include "server/head_samples.h"
#include "server/query_range.h"
#include "server/rollup_fold.h"
#include "server/row_sequence.h"
#include "server/sample_stream.h"
#include "storage/presence.h"
#include "storage/read_store.h"
#include "storage/vector_codec.h"

namespace stepwell {
namespace {

// What a fold had that ended on this thread, for the next one there: memory of that size would go back to the kernel
// each time. At most so many buckets, 140 KB.
constexpr std::size_t kKeptBucketsMax = 2'500;
thread_local std::vector<Bucket> kept_buckets;

// Confined to one thread. All that it is given outlives it.
class BucketsRead final : public RowVisitor {
 public:
  BucketsRead(const BucketPlan& plan, const std::vector<SeriesGroup>& groups,
              const HeadSamples& heads, const BatchAttempts* attempts, const TrialView& view,
              const BucketsSink& sink);

  // Before the OnSeriesEnd of its series. REQUIRES: the plan's buckets are of whole steps.
  void OnRollup(const StoredRollup& rollup);
  absl::Status OnRow(const StoredRow& row) override;
  absl::Status OnSeriesEnd(SeriesNo series_no) override;

 private:
  BucketFold& FoldOf(SeriesNo series_no);
  absl::Status AddPartOf(const StoredRow& row, BucketFold& fold);
  void AddRun(const SampleRun& run, BucketFold& fold) const;

  const BucketPlan plan_;
  const HeadSamples& heads_;
  const BatchAttempts* attempts_;
  const TrialView& view_;
  const BucketsSink& sink_;
  std::map<SeriesNo, std::size_t> group_of_;
  std::vector<std::size_t> left_;  // series of each group that are still to come
  std::map<std::size_t, BucketFold> folds_;
  std::vector<double> values_;  // of a row; kept for its memory
};

BucketsRead::BucketsRead(const BucketPlan& plan, const std::vector<SeriesGroup>& groups,
                         const HeadSamples& heads, const BatchAttempts* attempts,
                         const TrialView& view, const BucketsSink& sink)
    : plan_(plan), heads_(heads), attempts_(attempts), view_(view), sink_(sink) {
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (const SeriesNo series_no : groups[i].series_nos) group_of_[series_no] = i;
    left_.push_back(groups[i].series_nos.size());
  }
}

void BucketsRead::OnRollup(const StoredRollup& rollup) {
  AddRollup(*rollup.grid, *rollup.column, FoldOf(rollup.series_no));
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
  if (attempts_ == nullptr) return AddPartOf(row, fold);
  STEPWELL_ASSIGN_OR_RETURN(const SampleRun run, RunOfRow(row, view_.AttemptOf(row.writer_no)));
  AddRun(run, fold);
  return absl::OkStatus();
}

// Of a row at an end of the range most samples may lie without it: they are not decoded.
absl::Status BucketsRead::AddPartOf(const StoredRow& row, BucketFold& fold) {
  const std::span<const std::int64_t> times = row.ticks->times_us;
  const std::span<const std::uint8_t> presence = row.presence;
  std::size_t first = 0;
  std::size_t end = times.size();
  while (first < end && !plan_.Holds(times[first])) ++first;
  while (end > first && !plan_.Holds(times[end - 1])) --end;
  const auto present = [&](std::size_t from, std::size_t to) {
    if (presence.empty()) return to - from;
    return CountPresent(presence.subspan(from, to - from));
  };
  values_.resize(present(first, end));
  STEPWELL_RETURN_IF_ERROR(DecodePartInto(row.values, static_cast<std::size_t>(row.sample_count),
                                          present(0, first), values_));
  fold.AddTicks(times.subspan(first, end - first),
                presence.empty() ? presence : presence.subspan(first, end - first), values_);
  return absl::OkStatus();
}

absl::Status BucketsRead::OnSeriesEnd(SeriesNo series_no) {
  AddRun(heads_.Run(series_no), FoldOf(series_no));
  const std::size_t group = group_of_.at(series_no);
  if (--left_[group] == 0) {
    auto fold = folds_.extract(group);
    sink_(group, fold.mapped().buckets());
    auto memory = std::move(fold.mapped()).TakeBuckets();
    if (memory.capacity() <= kKeptBucketsMax) kept_buckets = std::move(memory);
  }
  return absl::OkStatus();
}

BucketFold& BucketsRead::FoldOf(SeriesNo series_no) {
  const std::size_t group = group_of_.at(series_no);
  const auto known = folds_.find(group);
  if (known != folds_.end()) return known->second;
  return folds_.emplace(group, BucketFold(plan_, std::exchange(kept_buckets, {}))).first->second;
}

void BucketsRead::AddRun(const SampleRun& run, BucketFold& fold) const {
  for (const Sample& sample : run) {
    if (attempts_ != nullptr && !attempts_->Counts(sample.attempt, sample.batch)) continue;
    fold.AddSample(sample.time_us, sample.batch, sample.value);
  }
}

RowFilter FilterOf(const TrialView& view, const BucketResolution& resolution,
                   const std::vector<SeriesGroup>& groups) {
  const BucketPlan& plan = resolution.plan;
  RowFilter filter;
  filter.trial_id = view.trial_id();
  for (const SeriesGroup& group : groups) {
    for (const SeriesNo series_no : group.series_nos) {
      filter.series_nos.push_back(Value(series_no));
    }
  }
  std::sort(filter.series_nos.begin(), filter.series_nos.end());
  filter.fold_no_max = view.pin().fold_no();
  filter.only_recent = resolution.step_seconds > 0;
  if (plan.axis == BucketAxis::kTime) {
    filter.start_us = plan.start;
    filter.end_us = plan.end;
    filter.grid = {.start_us = plan.start, .end_us = plan.end, .width_us = plan.width};
  } else if (plan.end <= INT32_MAX) {
    filter.start_batch = static_cast<std::int32_t>(plan.start);
    filter.end_batch = static_cast<std::int32_t>(plan.end);
  }
  // Else the range holds the largest batch there can be, and no filter ends behind that: all rows come.
  return filter;
}

// Buckets that are folded at a time: 6 MB, apart from groups of several series.
constexpr std::int64_t kOpenBucketsMax = 100'000;

// Some series at a time: their rollups, then what is not merged yet.
absl::Status ReadInto(TrialView& view, const RowFilter& filter, const BucketResolution& resolution,
                      BucketsRead& read) {
  const std::int32_t step_seconds = resolution.step_seconds;
  const auto series_max = static_cast<std::size_t>(
      std::clamp<std::int64_t>(kOpenBucketsMax / resolution.plan.bucket_count, 1,
                               std::int64_t{RowSequence::kSeriesPerRead}));
  for (const RowFilter& slice : RowSequence::Slice(filter, series_max)) {
    RowSequence rows(view.snapshot(), {slice});
    if (step_seconds > 0) {
      STEPWELL_ASSIGN_OR_RETURN(const auto rollups,
                                view.snapshot().ReadRollups({.trial_id = slice.trial_id,
                                                             .series_nos = slice.series_nos,
                                                             .step_seconds = step_seconds,
                                                             .start_us = slice.start_us,
                                                             .end_us = slice.end_us}));
      STEPWELL_RETURN_IF_ERROR(rows.Begin());  // both in one round trip
      for (;;) {
        STEPWELL_ASSIGN_OR_RETURN(const std::optional<StoredRollup> rollup, rollups->Next());
        if (!rollup) break;
        read.OnRollup(*rollup);
      }
    }
    STEPWELL_RETURN_IF_ERROR(VisitRows(rows, slice.series_nos, read));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadBuckets(TrialView& view, const std::vector<SeriesGroup>& groups,
                         const BucketResolution& resolution, const BatchAttempts* attempts,
                         const BucketsSink& sink) {
  STEPWELL_CHECK(resolution.plan.bucket_count > 0);
  const RowFilter filter = FilterOf(view, resolution, groups);
  const HeadSamples heads(view.pin().chunks(), filter.series_nos);
  BucketsRead read(resolution.plan, groups, heads, attempts, view, sink);
  return ReadInto(view, filter, resolution, read);
}

absl::StatusOr<BatchAttempts> ReadBatchAttempts(TrialView& view) {
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<WriterBatches> stored,
                            view.snapshot().ReadBatchSpans(view.trial_id(), view.pin().fold_no()));
  return AttemptsOf(stored, view.writers(), view.pin().chunks());
}

}  // namespace stepwell
