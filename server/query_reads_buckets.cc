// QueryReads::QueryBuckets: samples folded into buckets of time or of batches.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
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
#include "server/series_group.h"

namespace stepwell {
namespace {

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
  STEPWELL_RETURN_IF_ERROR(CheckGroupBy(request_untrusted.group_by()));
  if (request_untrusted.group_by_size() > 0 &&
      request_untrusted.aggregation() != v1::AGGREGATION_ACROSS) {
    return absl::InvalidArgumentError(
        "group_by is given without AGGREGATION_ACROSS; allowed: empty");
  }
  return absl::OkStatus();
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

using BucketSeries = v1::QueryBucketsResponse::BucketSeries;

// Without samples: no value.
std::optional<BucketSeries> SeriesOf(const SeriesGroup& group, const std::vector<Bucket>& buckets) {
  BucketSeries series;
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
  if (series.indexes_size() == 0) return std::nullopt;
  if (!any_nan) series.clear_nan_counts();
  *series.mutable_key() = ToWire(group.key);
  series.set_unit(group.unit);
  series.set_kind(static_cast<v1::SeriesKind>(group.kind));
  for (const SeriesNo series_no : group.series_nos) series.add_series_nos(Value(series_no));
  return series;
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
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<SeriesSelection> selections,
                            CheckSelectors(request_untrusted.selectors()));
  const GapFilter gaps = {.first_time_us = by_batch ? 0 : time_bounds.GapFirst(),
                          .last_time_us = by_batch ? 0 : time_bounds.GapLast()};
  STEPWELL_ASSIGN_OR_RETURN(const auto view,
                            TrialView::Open(sources_, request_untrusted.trial(), call, gaps));
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<Series> series, view->FindSeries(selections));

  BatchAttempts attempts;
  if (by_batch) {
    STEPWELL_ASSIGN_OR_RETURN(attempts, ReadBatchAttempts(*view));
  }
  const std::vector<SeriesGroup> groups = GroupSeries(series, request_untrusted);
  const std::vector<std::string> metric_groups = MetricGroupsOf(groups);
  const BucketResolution resolution =
      ChooseResolution(by_batch ? PlanBatchAxis(attempts, batch_range, buckets_max)
                                : PlanTimeAxis(*view, metric_groups, time_bounds, buckets_max),
                       buckets_max, request_untrusted.resolution(), view->usage(), metric_groups);
  const BucketPlan& plan = resolution.plan;
  STEPWELL_RETURN_IF_ERROR(CheckAnswerSize(groups.size(), 1, plan.bucket_count));

  v1::QueryBucketsResponse response;
  response.set_start(plan.start);
  response.set_width(plan.width);
  response.set_resolution(resolution.wire());
  if (plan.bucket_count > 0) {
    std::map<std::size_t, BucketSeries> of_group;
    STEPWELL_RETURN_IF_ERROR(
        ReadBuckets(*view, groups, resolution, by_batch ? &attempts : nullptr,
                    [&](std::size_t group, const std::vector<Bucket>& buckets) {
                      if (auto answered = SeriesOf(groups[group], buckets)) {
                        of_group[group] = *std::move(answered);
                      }
                    }));
    for (auto& [group, answered] : of_group) *response.add_series() = std::move(answered);
  }
  const bool one_group = selections.size() == 1;
  STEPWELL_ASSIGN_OR_RETURN(*response.mutable_completeness(),
                            view->Completeness(one_group ? selections[0].metric_group : "",
                                               gaps.first_time_us, gaps.last_time_us));
  return response;
}

}  // namespace stepwell
