// QueryReads::QueryBuckets: samples folded into buckets of time or of batches.
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/bucket_plan.h"
#include "server/bucket_resolution.h"
#include "server/buckets_read.h"
#include "server/query_range.h"
#include "server/query_reads.h"
#include "server/query_wire.h"
#include "server/row_sequence.h"
#include "server/series_group.h"

namespace stepwell {
namespace {

constexpr int kSelectorsMax = 1000;
constexpr int kGroupByMax = 32;

std::vector<SeriesGroup> GroupSeries(const std::vector<Series>& series,
                                     const v1::QueryBucketsRequest& request) {
  if (request.aggregation() != v1::AGGREGATION_ACROSS) return EachByItself(series);
  return GroupAcross(series, {request.group_by().begin(), request.group_by().end()});
}

absl::Status CheckRequest(const v1::QueryBucketsRequest& request_untrusted) {
  if (!v1::Aggregation_IsValid(request_untrusted.aggregation())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "aggregation is ", static_cast<int>(request_untrusted.aggregation()), "; allowed: 0, 1"));
  }
  if (request_untrusted.selectors_size() > kSelectorsMax) {
    return absl::InvalidArgumentError(absl::StrCat("selectors has ",
                                                   request_untrusted.selectors_size(),
                                                   " entries; allowed: 0 ... ", kSelectorsMax));
  }
  if (request_untrusted.group_by_size() > kGroupByMax) {
    return absl::InvalidArgumentError(absl::StrCat("group_by has ",
                                                   request_untrusted.group_by_size(),
                                                   " entries; allowed: 0 ... ", kGroupByMax));
  }
  if (request_untrusted.group_by_size() > 0 &&
      request_untrusted.aggregation() != v1::AGGREGATION_ACROSS) {
    return absl::InvalidArgumentError(
        "group_by is given without AGGREGATION_ACROSS; allowed: empty");
  }
  return absl::OkStatus();
}

absl::Status CheckAnswerSize(std::size_t group_count, const BucketPlan& plan) {
  const auto count = static_cast<std::int64_t>(group_count);
  if (count == 0 || plan.bucket_count <= kAnswerBucketsMax / count) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      count, " series times ", plan.bucket_count, " buckets is over ", kAnswerBucketsMax,
      ": lower max_buckets to ", kAnswerBucketsMax / count, " or choose fewer series"));
}

std::vector<std::string> MetricGroupsOf(const std::vector<Series>& series) {
  std::set<std::string> groups;
  for (const Series& one : series) groups.insert(one.definition.key.metric_group);
  return {groups.begin(), groups.end()};
}

BucketPlan PlanTimeAxis(const TrialView& view, const std::vector<std::string>& metric_groups,
                        const TimeBounds& asked, std::int32_t buckets_max) {
  const TimeBounds span = SpanOf(view.usage(), view.pin().chunks(), metric_groups);
  const std::int64_t start = asked.start_us == INT64_MIN ? span.start_us : asked.start_us;
  const std::int64_t end = asked.end_us == INT64_MAX ? span.end_us : asked.end_us;
  return PlanBuckets(BucketAxis::kTime, start, std::max(start, end), buckets_max);
}

BucketPlan PlanBatchAxis(const BatchAttempts& attempts, const v1::BatchRange& asked,
                         std::int32_t buckets_max) {
  const std::int64_t start = asked.start_batch();
  const std::int64_t end = asked.end_batch() == 0 ? attempts.end_batch() : asked.end_batch();
  return PlanBuckets(BucketAxis::kBatch, start, std::max(start, end), buckets_max);
}

RowFilter FilterOf(const TrialView& view, const BucketResolution& resolution,
                   const std::vector<Series>& series) {
  const BucketPlan& plan = resolution.plan;
  RowFilter filter;
  filter.trial_id = view.trial_id();
  filter.series_nos = NumbersOf(series);
  filter.fold_no_max = view.pin().fold_no();
  filter.only_recent = resolution.step_seconds > 0;
  if (plan.axis == BucketAxis::kTime) {
    filter.start_us = plan.start;
    filter.end_us = plan.end;
    filter.grid = {.start_us = plan.start, .end_us = plan.end, .width_us = plan.width};
  } else {
    filter.start_batch = static_cast<std::int32_t>(plan.start);
    filter.end_batch = static_cast<std::int32_t>(std::min<std::int64_t>(plan.end, INT32_MAX));
  }
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
    if (step_seconds > 0) {
      STEPWELL_ASSIGN_OR_RETURN(const auto rollups,
                                view.snapshot().ReadRollups({.trial_id = slice.trial_id,
                                                             .series_nos = slice.series_nos,
                                                             .step_seconds = step_seconds,
                                                             .start_us = slice.start_us,
                                                             .end_us = slice.end_us}));
      for (;;) {
        STEPWELL_ASSIGN_OR_RETURN(const std::optional<StoredRollup> rollup, rollups->Next());
        if (!rollup) break;
        read.OnRollup(*rollup);
      }
    }
    RowSequence rows(view.snapshot(), {slice});
    STEPWELL_RETURN_IF_ERROR(VisitRows(rows, slice.series_nos, read));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::QueryBucketsResponse> QueryReads::QueryBuckets(
    const v1::QueryBucketsRequest& request_untrusted, const ReadCall& call) const {
  STEPWELL_RETURN_IF_ERROR(CheckRequest(request_untrusted));
  const bool by_batch = request_untrusted.axis_case() == v1::QueryBucketsRequest::kBatchRange;
  STEPWELL_RETURN_IF_ERROR(CheckResolution(request_untrusted.resolution(),
                                           by_batch ? BucketAxis::kBatch : BucketAxis::kTime));
  STEPWELL_ASSIGN_OR_RETURN(const TimeBounds time_bounds,
                            CheckTimeRange(request_untrusted.time_range()));
  STEPWELL_ASSIGN_OR_RETURN(const v1::BatchRange batch_range,
                            CheckBatchRange(request_untrusted.batch_range()));
  STEPWELL_ASSIGN_OR_RETURN(
      const std::int32_t buckets_max,
      CheckSize("max_buckets", request_untrusted.max_buckets(), kBucketsDefault, kBucketsMax));
  std::vector<SeriesSelection> selections;
  for (int i = 0; i < request_untrusted.selectors_size(); ++i) {
    STEPWELL_ASSIGN_OR_RETURN(
        SeriesSelection selection,
        CheckSelector(absl::StrCat("selectors[", i, "]"), request_untrusted.selectors(i)));
    selections.push_back(std::move(selection));
  }
  STEPWELL_ASSIGN_OR_RETURN(const auto view,
                            TrialView::Open(sources_, request_untrusted.trial(), call));
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<Series> series, view->FindSeries(selections));

  BatchAttempts attempts;
  if (by_batch) {
    STEPWELL_ASSIGN_OR_RETURN(
        const std::vector<WriterBatches> stored,
        view->snapshot().ReadBatchSpans(view->trial_id(), view->pin().fold_no()));
    attempts = AttemptsOf(stored, view->writers(), view->pin().chunks());
  }
  const std::vector<std::string> metric_groups = MetricGroupsOf(series);
  const BucketResolution resolution =
      ChooseResolution(by_batch ? PlanBatchAxis(attempts, batch_range, buckets_max)
                                : PlanTimeAxis(*view, metric_groups, time_bounds, buckets_max),
                       buckets_max, request_untrusted.resolution(), view->usage(), metric_groups);
  const BucketPlan& plan = resolution.plan;
  const std::vector<SeriesGroup> groups = GroupSeries(series, request_untrusted);
  STEPWELL_RETURN_IF_ERROR(CheckAnswerSize(groups.size(), plan));

  v1::QueryBucketsResponse response;
  response.set_start(plan.start);
  response.set_width(plan.width);
  response.set_resolution(resolution.wire());
  if (plan.bucket_count > 0) {
    const RowFilter filter = FilterOf(*view, resolution, series);
    const HeadSamples heads(view->pin().chunks(), filter.series_nos);
    BucketsRead read(plan, groups, heads, by_batch ? &attempts : nullptr, *view);
    STEPWELL_RETURN_IF_ERROR(ReadInto(*view, filter, resolution, read));
    read.MoveTo(response);
  }
  const bool one_group = selections.size() == 1;
  STEPWELL_ASSIGN_OR_RETURN(*response.mutable_completeness(),
                            view->Completeness(one_group ? selections[0].metric_group : "",
                                               by_batch ? 0 : time_bounds.GapFirst(),
                                               by_batch ? 0 : time_bounds.GapLast()));
  return response;
}

}  // namespace stepwell
