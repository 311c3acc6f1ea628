// QueryReads::SummarizeTimings: where the time of a trial's steps went.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/buckets_read.h"
#include "server/head_samples.h"
#include "server/query_range.h"
#include "server/query_reads.h"
#include "server/row_sequence.h"
#include "server/sample_stream.h"
#include "server/timing_removals.h"
#include "server/timing_summary.h"
#include "storage/caps.h"

namespace stepwell {
namespace {

constexpr char kTimingGroup[] = "timing";

// Feeds a summary with the samples of one attempt.
class TimingsRead final : public RowVisitor {
 public:
  TimingsRead(TimingSummary& summary, const HeadSamples& heads, const TimeBounds& times,
              const BatchBounds& batches, std::int32_t attempt)
      : summary_(summary), heads_(heads), times_(times), batches_(batches), attempt_(attempt) {}

  // Rows come of this attempt's writers alone.
  absl::Status OnRow(const StoredRow& row) override {
    STEPWELL_ASSIGN_OR_RETURN(const SampleRun run, RunOfRow(row, attempt_));
    AddRun(row.series_no, run);
    return absl::OkStatus();
  }

  absl::Status OnSeriesEnd(SeriesNo series_no) override {
    AddRun(series_no, heads_.Run(series_no));
    summary_.Finish(series_no);
    return absl::OkStatus();
  }

  // Of the attempt's samples that were read, whatever their batch.
  std::optional<std::int64_t> first_time_us() const { return first_time_us_; }

 private:
  void AddRun(SeriesNo series_no, const SampleRun& run) {
    for (const Sample& sample : run) {
      if (sample.attempt != attempt_ || !times_.Holds(sample.time_us)) continue;
      first_time_us_ = std::min(first_time_us_.value_or(INT64_MAX), sample.time_us);
      if (!batches_.Holds(sample.batch)) continue;
      summary_.Add(series_no, sample.batch, sample.value);
    }
  }

  TimingSummary& summary_;
  const HeadSamples& heads_;
  const TimeBounds times_;
  const BatchBounds batches_;
  const std::int32_t attempt_;
  std::optional<std::int64_t> first_time_us_;
};

// Slice after slice, in the order in which the summary holds least.
absl::Status ReadSlices(const TimingSummary& summary, ReadSnapshot& snapshot, RowFilter filter,
                        TimingsRead& read) {
  for (std::vector<std::int32_t>& slice : summary.ReadOrder(RowSequence::kSeriesPerRead)) {
    filter.series_nos = std::move(slice);
    RowSequence rows(snapshot, {filter});
    STEPWELL_RETURN_IF_ERROR(VisitRows(rows, filter.series_nos, read));
  }
  return absl::OkStatus();
}

v1::SummarizeTimingsResponse::Timing ToWire(const TimingLine& line) {
  v1::SummarizeTimingsResponse::Timing timing;
  timing.set_name(line.name);
  timing.set_rank(line.rank);
  for (const auto& [name, value] : line.labels) (*timing.mutable_labels())[name] = value;
  timing.set_in_step(line.in_step);
  timing.set_steps(line.steps);
  timing.set_count(line.count);
  timing.set_total_seconds(line.total_seconds);
  timing.set_self_seconds(line.self_seconds);
  timing.set_share(line.share);
  timing.set_mean_seconds(line.mean_seconds);
  timing.set_p50_seconds(line.p50_seconds);
  timing.set_p95_seconds(line.p95_seconds);
  timing.set_p99_seconds(line.p99_seconds);
  timing.set_max_seconds(line.max_seconds);
  timing.set_quantiles_exact(line.quantiles_exact);
  return timing;
}

v1::SummarizeTimingsResponse ToWire(const TimingTable& table) {
  v1::SummarizeTimingsResponse response;
  for (const TimingLine& line : table.timings) *response.add_timings() = ToWire(line);
  for (const RankLine& line : table.ranks) {
    auto& rank = *response.add_ranks();
    rank.set_rank(line.rank);
    rank.set_steps(line.steps);
    rank.set_step_seconds(line.step_seconds);
    rank.set_unaccounted_seconds(line.unaccounted_seconds);
    rank.set_unaccounted_share(line.unaccounted_share);
  }
  return response;
}

// Of caps, each of what it removed so far: when the newest of that was made, 0 = unknown. What a window left unrecorded
// was never there. No value = there are so many gaps that some are not listed.
absl::StatusOr<std::optional<std::vector<std::int64_t>>> ListRemovals(
    TrialView& view, const TimeBounds& bounds, const v1::Completeness& completeness) {
  std::vector<std::int64_t> last_times;
  if (!completeness.gaps_truncated()) {
    for (const v1::Gap& gap : completeness.gaps()) {
      if (gap.cause() != v1::GAP_CAUSE_CAP || gap.reason() == kWindowOverReason) continue;
      last_times.push_back(gap.last_time_us());
    }
    return last_times;
  }
  STEPWELL_ASSIGN_OR_RETURN(
      const GapList caps,
      view.snapshot().ReadGaps(view.trial_id(), {.first_time_us = bounds.GapFirst(),
                                                 .last_time_us = bounds.GapLast(),
                                                 .cause = GapCause::kCap,
                                                 .metric_group = kTimingGroup}));
  if (caps.truncated) return std::nullopt;
  for (const Gap& gap : caps.gaps) {
    if (gap.reason != kWindowOverReason) last_times.push_back(gap.last_time_us);
  }
  return last_times;
}

// Whether a cap removed samples of the answer, or may have. `first_time_us`: of the attempt, as far as it is held.
absl::StatusOr<bool> IsRemoved(TrialView& view, const TimeBounds& bounds,
                               const v1::Completeness& completeness, std::int32_t attempt,
                               std::optional<std::int64_t> first_time_us) {
  STEPWELL_ASSIGN_OR_RETURN(const auto removals, ListRemovals(view, bounds, completeness));
  if (!removals) return true;
  if (removals->empty()) return false;
  AttemptBegin begin{.created_time_us = {}, .first_sample_time_us = first_time_us};
  STEPWELL_ASSIGN_OR_RETURN(begin.created_time_us,
                            view.snapshot().ReadAttemptCreated(view.trial_id(), attempt));
  return std::any_of(removals->begin(), removals->end(), [&](std::int64_t last_time_us) {
    return MayBeOfAttempt(last_time_us, view.usage(), kTimingGroup, begin);
  });
}

// Where a cap removed samples of the range, quantiles of what is left would pass for those of all.
void LeaveOutQuantiles(v1::SummarizeTimingsResponse& response) {
  for (auto& timing : *response.mutable_timings()) {
    timing.clear_p50_seconds();
    timing.clear_p95_seconds();
    timing.clear_p99_seconds();
    timing.clear_quantiles_exact();
    timing.set_quantiles_absent(v1::ABSENCE_REASON_RAW_REMOVED);
  }
}

// The attempt asked for, or the newest (of those that have such batches, if one does); kNotFound when
// it does not exist.
absl::StatusOr<std::int32_t> PickAttempt(TrialView& view, std::int32_t asked,
                                         const BatchBounds& batches) {
  if (asked < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "attempt is ", asked, "; allowed: 0 (the newest) ... ", view.record().attempt_count));
  }
  if (asked == 0 && batches.is_bound) {
    STEPWELL_ASSIGN_OR_RETURN(const BatchAttempts attempts, ReadBatchAttempts(view));
    return attempts.NewestIn(batches.start, batches.end).value_or(view.NewestAttempt());
  }
  if (asked == 0) return view.NewestAttempt();
  if (asked > view.record().attempt_count) {
    return absl::NotFoundError(absl::StrCat("trial ", Value(view.trial_id()), " has no attempt ",
                                            asked, "; it has ", view.record().attempt_count));
  }
  return asked;
}

}  // namespace

absl::StatusOr<v1::SummarizeTimingsResponse> QueryReads::SummarizeTimings(
    const v1::SummarizeTimingsRequest& request_untrusted, const ReadCall& call) const {
  STEPWELL_ASSIGN_OR_RETURN(const TimeBounds bounds,
                            CheckTimeRange(request_untrusted.time_range()));
  BatchBounds batches;
  if (request_untrusted.has_batch_range()) {
    STEPWELL_ASSIGN_OR_RETURN(batches, CheckBatchBounds(request_untrusted.batch_range()));
  }
  STEPWELL_ASSIGN_OR_RETURN(
      const auto view,
      TrialView::Open(sources_, request_untrusted.trial(), call,
                      {.first_time_us = bounds.GapFirst(), .last_time_us = bounds.GapLast()}));
  STEPWELL_ASSIGN_OR_RETURN(const std::int32_t attempt,
                            PickAttempt(*view, request_untrusted.attempt(), batches));
  SeriesSelection selection;
  selection.metric_group = kTimingGroup;
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<Series> series, view->FindSeries({selection}));

  RowFilter filter;
  filter.trial_id = view->trial_id();
  filter.series_nos = NumbersOf(series);
  filter.start_us = bounds.start_us;
  filter.end_us = bounds.end_us;
  if (batches.is_bound) {
    filter.start_batch = batches.start;
    filter.end_batch = batches.end;
  }
  filter.fold_no_max = view->pin().fold_no();
  for (const WriterRecord& writer : view->writers()) {
    if (writer.attempt == attempt) filter.writer_nos.push_back(Value(writer.writer_no));
  }
  TimingSummary summary(series);
  const HeadSamples heads(view->pin().chunks(), filter.series_nos);
  TimingsRead read(summary, heads, bounds, batches, attempt);
  STEPWELL_RETURN_IF_ERROR(ReadSlices(summary, view->snapshot(), filter, read));

  v1::SummarizeTimingsResponse response = ToWire(summary.Table());
  response.set_attempt(attempt);
  STEPWELL_ASSIGN_OR_RETURN(*response.mutable_completeness(),
                            view->Completeness(kTimingGroup, bounds.GapFirst(), bounds.GapLast()));
  STEPWELL_ASSIGN_OR_RETURN(const bool is_removed, IsRemoved(*view, bounds, response.completeness(),
                                                             attempt, read.first_time_us()));
  if (is_removed) LeaveOutQuantiles(response);
  return response;
}

}  // namespace stepwell
