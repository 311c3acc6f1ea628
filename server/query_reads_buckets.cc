// QueryReads::QueryBuckets: samples folded into buckets of time or of batches.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/bucket_fold.h"
#include "server/bucket_plan.h"
#include "server/head_samples.h"
#include "server/query_range.h"
#include "server/query_reads.h"
#include "server/query_wire.h"
#include "server/row_sequence.h"
#include "server/sample_stream.h"

namespace stepwell {
namespace {

constexpr int kSelectorsMax = 1000;
constexpr int kGroupByMax = 32;

// Series that are answered as one.
struct Group {
  SeriesKey key;
  std::string unit;
  SeriesKind kind{};
  std::vector<SeriesNo> series_nos;
};

std::vector<Group> GroupSeries(const std::vector<Series>& series,
                               const v1::QueryBucketsRequest& request) {
  const std::set<std::string> kept(request.group_by().begin(), request.group_by().end());
  std::map<std::pair<SeriesNo, std::string>, Group> groups;
  std::map<std::string, SeriesNo> first_of;
  for (const Series& one : series) {
    SeriesKey key = one.definition.key;
    std::string identity;
    if (request.aggregation() == v1::AGGREGATION_ACROSS) {
      std::erase_if(key.labels, [&](const auto& label) { return !kept.contains(label.first); });
      for (const std::string& part : {key.metric_group, key.name, one.definition.unit}) {
        absl::StrAppend(&identity, part.size(), ":", part);
      }
      for (const auto& [name, value] : key.labels) {
        absl::StrAppend(&identity, name.size(), ":", name, value.size(), ":", value);
      }
    } else {
      identity = absl::StrCat(Value(one.series_no));
    }
    // In the order of each group's first series.
    const SeriesNo first = first_of.emplace(identity, one.series_no).first->second;
    Group& group = groups[{first, identity}];
    group.key = std::move(key);
    group.unit = one.definition.unit;
    group.kind = one.definition.kind;
    group.series_nos.push_back(one.series_no);
  }
  std::vector<Group> in_order;
  for (auto& [place, group] : groups) in_order.push_back(std::move(group));
  return in_order;
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

// What one query folds, and how its samples are told from those that do not count.
class BucketsRead final : public RowVisitor {
 public:
  BucketsRead(const BucketPlan& plan, const std::vector<Group>& groups, const HeadSamples& heads,
              const BatchAttempts* attempts, const TrialView& view)
      : plan_(plan), groups_(groups), heads_(heads), attempts_(attempts), view_(view) {
    for (std::size_t i = 0; i < groups.size(); ++i) {
      for (const SeriesNo series_no : groups[i].series_nos) group_of_[series_no] = i;
      left_.push_back(groups[i].series_nos.size());
    }
  }

  absl::Status OnRow(const StoredRow& row) override {
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

  absl::Status OnSeriesEnd(SeriesNo series_no) override {
    AddRun(heads_.Run(series_no), FoldOf(series_no));
    const std::size_t group = group_of_.at(series_no);
    if (--left_[group] == 0) {
      Write(group);
      folds_.erase(group);
    }
    return absl::OkStatus();
  }

  // In the order of groups; those without samples are left out.
  void MoveTo(v1::QueryBucketsResponse& response) {
    for (auto& [group, series] : written_) *response.add_series() = std::move(series);
  }

 private:
  BucketFold& FoldOf(SeriesNo series_no) {
    return folds_.try_emplace(group_of_.at(series_no), plan_).first->second;
  }

  void AddRun(const SampleRun& run, BucketFold& fold) const {
    for (const Sample& sample : run) {
      if (attempts_ != nullptr && !attempts_->Counts(sample.attempt, sample.batch)) continue;
      fold.AddSample(sample.time_us, sample.batch, sample.value);
    }
  }

  void Write(std::size_t group) {
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

  const BucketPlan plan_;
  const std::vector<Group>& groups_;
  const HeadSamples& heads_;
  const BatchAttempts* attempts_;  // null on the time axis
  const TrialView& view_;
  std::map<SeriesNo, std::size_t> group_of_;
  std::vector<std::size_t> left_;  // series of each group that are still to come
  std::map<std::size_t, BucketFold> folds_;
  std::map<std::size_t, v1::QueryBucketsResponse::BucketSeries> written_;
};

BucketPlan PlanTimeAxis(const TrialView& view, const std::vector<Series>& series,
                        const TimeBounds& asked, std::int32_t buckets_max) {
  std::set<std::string> groups;
  for (const Series& one : series) groups.insert(one.definition.key.metric_group);
  const TimeBounds span = SpanOf(view.usage(), view.pin().chunks(), {groups.begin(), groups.end()});
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

RowFilter FilterOf(const TrialView& view, const BucketPlan& plan,
                   const std::vector<Series>& series) {
  RowFilter filter;
  filter.trial_id = view.trial_id();
  filter.series_nos = NumbersOf(series);
  filter.fold_no_max = view.pin().fold_no();
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

}  // namespace

absl::StatusOr<v1::QueryBucketsResponse> QueryReads::QueryBuckets(
    const v1::QueryBucketsRequest& request_untrusted, const ReadCall& call) const {
  STEPWELL_RETURN_IF_ERROR(CheckRequest(request_untrusted));
  const bool by_batch = request_untrusted.axis_case() == v1::QueryBucketsRequest::kBatchRange;
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
  const BucketPlan plan = by_batch ? PlanBatchAxis(attempts, batch_range, buckets_max)
                                   : PlanTimeAxis(*view, series, time_bounds, buckets_max);
  const std::vector<Group> groups = GroupSeries(series, request_untrusted);
  STEPWELL_RETURN_IF_ERROR(CheckAnswerSize(groups.size(), plan));

  v1::QueryBucketsResponse response;
  response.set_start(plan.start);
  response.set_width(plan.width);
  response.set_resolution(v1::RESOLUTION_RAW);
  if (plan.bucket_count > 0) {
    const RowFilter filter = FilterOf(*view, plan, series);
    const HeadSamples heads(view->pin().chunks(), filter.series_nos);
    BucketsRead read(plan, groups, heads, by_batch ? &attempts : nullptr, *view);
    RowSequence rows(view->snapshot(), RowSequence::Slice(filter));
    STEPWELL_RETURN_IF_ERROR(VisitRows(rows, filter.series_nos, read));
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
