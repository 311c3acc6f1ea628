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
#include "server/gap_places.h"
#include "server/query_range.h"
#include "server/query_reads.h"
#include "server/query_wire.h"
#include "server/row_sequence.h"
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
                        const std::vector<std::int32_t>& series_nos, const TimeBounds& asked,
                        std::int32_t buckets_max) {
  const bool is_open = asked.start_us == INT64_MIN || asked.end_us == INT64_MAX;
  const TimeBounds span =
      is_open ? SpanOf(view.usage(), view.pin().chunks(), metric_groups, series_nos) : asked;
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

// Batches beyond the trial's last are none, whatever was asked for.
std::int64_t EndOf(const BucketPlan& plan, const BatchAttempts& attempts) {
  if (plan.axis == BucketAxis::kTime) return plan.end;
  return std::clamp(attempts.end_batch(), plan.start, plan.end);
}

using BucketSeries = v1::QueryBucketsResponse::BucketSeries;

bool IsEmpty(const Bucket& bucket) { return bucket.count == 0 && bucket.nan_count == 0; }

struct BucketCount {
  std::size_t samples = 0;  // buckets that have any
  bool has_nan = false;
};

BucketCount CountThose(const std::vector<Bucket>& buckets) {
  BucketCount counted;
  for (const Bucket& bucket : buckets) {
    counted.samples += IsEmpty(bucket) ? 0 : 1;
    counted.has_nan |= bucket.nan_count > 0;
  }
  return counted;
}

// Room for `count` more, to be written.
template <typename Value>
Value* Extend(google::protobuf::RepeatedField<Value>& values, std::size_t count) {
  values.Reserve(values.size() + static_cast<int>(count));
  return values.AddNAlreadyReserved(static_cast<int>(count));
}

// Those that are not empty, column by column. An answer may have a million.
void AddBuckets(const std::vector<Bucket>& buckets, std::size_t count, BucketSeries& series) {
  std::uint32_t* const indexes = Extend(*series.mutable_indexes(), count);
  std::uint64_t* const counts = Extend(*series.mutable_counts(), count);
  double* const mins = Extend(*series.mutable_mins(), count);
  double* const maxs = Extend(*series.mutable_maxs(), count);
  double* const means = Extend(*series.mutable_means(), count);
  double* const lasts = Extend(*series.mutable_lasts(), count);
  const double none = std::nan("");
  std::size_t at = 0;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    const Bucket& bucket = buckets[i];
    if (IsEmpty(bucket)) continue;
    const bool has_values = bucket.count > 0;
    indexes[at] = static_cast<std::uint32_t>(i);
    counts[at] = bucket.count;
    mins[at] = has_values ? bucket.min : none;
    maxs[at] = has_values ? bucket.max : none;
    means[at] = has_values ? bucket.mean() : none;
    lasts[at] = has_values ? bucket.last : none;
    ++at;
  }
}

// Without samples: no value.
std::optional<BucketSeries> SeriesOf(const SeriesGroup& group, const std::vector<Bucket>& buckets) {
  const BucketCount counted = CountThose(buckets);
  if (counted.samples == 0) return std::nullopt;
  BucketSeries series;
  AddBuckets(buckets, counted.samples, series);
  if (counted.has_nan) {
    for (const Bucket& bucket : buckets) {
      if (!IsEmpty(bucket)) series.add_nan_counts(bucket.nan_count);
    }
  }
  *series.mutable_key() = ToWire(group.key);
  series.set_unit(group.unit);
  series.set_kind(static_cast<v1::SeriesKind>(group.kind));
  for (const SeriesNo series_no : group.series_nos) series.add_series_nos(Value(series_no));
  return series;
}

// What a request asks, checked.
struct AskedBuckets {
  bool by_batch = false;
  TimeBounds time_bounds;
  v1::BatchRange batch_range;
  std::int32_t buckets_max = 0;
  std::vector<SeriesSelection> selections;
  GapFilter gaps;
};

absl::StatusOr<AskedBuckets> CheckAsked(const v1::QueryBucketsRequest& request_untrusted) {
  AskedBuckets asked;
  STEPWELL_RETURN_IF_ERROR(CheckRequest(request_untrusted));
  asked.by_batch = request_untrusted.axis_case() == v1::QueryBucketsRequest::kBatchRange;
  STEPWELL_RETURN_IF_ERROR(CheckResolution(
      request_untrusted.resolution(), asked.by_batch ? BucketAxis::kBatch : BucketAxis::kTime));
  STEPWELL_ASSIGN_OR_RETURN(asked.time_bounds, CheckTimeRange(request_untrusted.time_range()));
  STEPWELL_ASSIGN_OR_RETURN(asked.batch_range, CheckBatchRange(request_untrusted.batch_range()));
  STEPWELL_ASSIGN_OR_RETURN(
      asked.buckets_max,
      CheckSize("max_buckets", request_untrusted.max_buckets(), kBucketsDefault, kBucketsMax));
  STEPWELL_ASSIGN_OR_RETURN(asked.selections, CheckSelectors(request_untrusted.selectors()));
  if (!asked.by_batch) {
    asked.gaps = {.first_time_us = asked.time_bounds.GapFirst(),
                  .last_time_us = asked.time_bounds.GapLast()};
  }
  return asked;
}

// One answer from one view. Confined to one thread; the others outlive it.
class BucketsAnswer {
 public:
  BucketsAnswer(TrialView& view, const v1::QueryBucketsRequest& request, const AskedBuckets& asked)
      : view_(view), request_(request), asked_(asked) {}

  // No value = the view's book was presumed wrongly.
  absl::StatusOr<std::optional<v1::QueryBucketsResponse>> Make();

 private:
  absl::Status FindGroups(const std::vector<Series>& series);
  BucketResolution Resolution(const BatchAttempts& attempts) const;
  absl::StatusOr<bool> ConfirmBook(const BatchAttempts& attempts,
                                   const BucketResolution& resolution);
  absl::Status AddSeries(const BatchAttempts& attempts, const BucketResolution& resolution,
                         v1::QueryBucketsResponse& response);

  TrialView& view_;
  const v1::QueryBucketsRequest& request_;
  const AskedBuckets& asked_;
  std::vector<SeriesGroup> groups_;
  std::vector<std::string> metric_groups_;
  std::vector<std::int32_t> series_nos_;
  std::vector<AskedGroup> asked_groups_;  // metric_groups_ with what is asked of each
};

absl::Status BucketsAnswer::FindGroups(const std::vector<Series>& series) {
  groups_ = GroupSeries(series, request_);
  series_nos_ = NumbersOf(series);
  metric_groups_ = MetricGroupsOf(groups_);
  const std::vector<std::int32_t> asked = CountByGroup(series, metric_groups_);
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<std::int32_t> all, view_.CountSeries(metric_groups_));
  for (std::size_t i = 0; i < metric_groups_.size(); ++i) {
    const double share = static_cast<double>(asked[i]) / std::max(1, all[i]);
    asked_groups_.push_back({metric_groups_[i], share});
  }
  return absl::OkStatus();
}

BucketResolution BucketsAnswer::Resolution(const BatchAttempts& attempts) const {
  return ChooseResolution(asked_.by_batch
                              ? PlanBatchAxis(attempts, asked_.batch_range, asked_.buckets_max)
                              : PlanTimeAxis(view_, metric_groups_, series_nos_, asked_.time_bounds,
                                             asked_.buckets_max),
                          asked_.buckets_max, request_.resolution(), view_.usage(), asked_groups_);
}

absl::StatusOr<bool> BucketsAnswer::ConfirmBook(const BatchAttempts& attempts,
                                                const BucketResolution& resolution) {
  STEPWELL_ASSIGN_OR_RETURN(const bool held, view_.ConfirmBook());
  return held && Resolution(attempts) == resolution;
}

absl::Status BucketsAnswer::AddSeries(const BatchAttempts& attempts,
                                      const BucketResolution& resolution,
                                      v1::QueryBucketsResponse& response) {
  if (resolution.plan.bucket_count == 0) return absl::OkStatus();
  std::map<std::size_t, BucketSeries> of_group;
  STEPWELL_RETURN_IF_ERROR(ReadBuckets(view_, groups_, resolution,
                                       asked_.by_batch ? &attempts : nullptr,
                                       [&](std::size_t group, const std::vector<Bucket>& buckets) {
                                         if (auto answered = SeriesOf(groups_[group], buckets)) {
                                           of_group[group] = *std::move(answered);
                                         }
                                       }));
  for (auto& [group, answered] : of_group) *response.add_series() = std::move(answered);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<v1::QueryBucketsResponse>> BucketsAnswer::Make() {
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<Series> series, view_.FindSeries(asked_.selections));
  BatchAttempts attempts;
  if (asked_.by_batch) {
    STEPWELL_ASSIGN_OR_RETURN(attempts, ReadBatchAttempts(view_));
  }
  STEPWELL_RETURN_IF_ERROR(FindGroups(series));
  const BucketResolution resolution = Resolution(attempts);
  STEPWELL_RETURN_IF_ERROR(CheckAnswerSize(groups_.size(), 1, resolution.plan.bucket_count));
  // Much must not be read in vain.
  if (series.size() > RowSequence::kSeriesPerRead) {
    STEPWELL_ASSIGN_OR_RETURN(const bool held, ConfirmBook(attempts, resolution));
    if (!held) return std::nullopt;
  }

  v1::QueryBucketsResponse response;
  response.set_start(resolution.plan.start);
  response.set_width(resolution.plan.width);
  response.set_end(EndOf(resolution.plan, attempts));
  response.set_resolution(resolution.wire());
  STEPWELL_RETURN_IF_ERROR(AddSeries(attempts, resolution, response));
  STEPWELL_ASSIGN_OR_RETURN(const bool held, ConfirmBook(attempts, resolution));
  if (!held) return std::nullopt;
  const bool one_group = asked_.selections.size() == 1;
  STEPWELL_ASSIGN_OR_RETURN(
      *response.mutable_completeness(),
      view_.Completeness(one_group ? asked_.selections[0].metric_group : "",
                         asked_.gaps.first_time_us, asked_.gaps.last_time_us));
  if (asked_.by_batch) {
    STEPWELL_RETURN_IF_ERROR(PlaceGaps(view_, attempts, *response.mutable_completeness()));
  }
  return response;
}

}  // namespace

absl::StatusOr<v1::QueryBucketsResponse> QueryReads::QueryBuckets(
    const v1::QueryBucketsRequest& request_untrusted, const ReadCall& call) const {
  STEPWELL_ASSIGN_OR_RETURN(const AskedBuckets asked, CheckAsked(request_untrusted));
  auto book = asked.by_batch ? TrialView::Book::kRead : TrialView::Book::kRemembered;
  for (;;) {
    STEPWELL_ASSIGN_OR_RETURN(const auto view, TrialView::Open(sources_, request_untrusted.trial(),
                                                               call, asked.gaps, book));
    const bool was_presumed = view->is_presumed();
    auto answer = BucketsAnswer(*view, request_untrusted, asked).Make();
    if (answer.ok() && answer->has_value()) return **std::move(answer);
    // What was presumed is asked again, unless there is no time for it, or nobody waits.
    const bool is_over =
        absl::IsDeadlineExceeded(answer.status()) || absl::IsCancelled(answer.status());
    if (!was_presumed || is_over) return answer.status();
    book = view->is_remembered() ? TrialView::Book::kPresumed : TrialView::Book::kRead;
  }
}

}  // namespace stepwell
