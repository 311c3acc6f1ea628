// QueryReads::CompareTrials: the same series of several trials side by side.
#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/bucket_resolution.h"
#include "server/buckets_read.h"
#include "server/compare_groups.h"
#include "server/compare_plan.h"
#include "server/compare_sides.h"
#include "server/gap_places.h"
#include "server/query_reads.h"
#include "server/query_wire.h"

namespace stepwell {
namespace {

using Views = std::vector<std::unique_ptr<TrialView>>;

absl::StatusOr<std::vector<std::vector<Series>>> FindSeries(
    const Views& views, const std::vector<SeriesSelection>& selections) {
  std::vector<std::vector<Series>> of_trials;
  std::size_t count = 0;
  for (const auto& view : views) {
    STEPWELL_ASSIGN_OR_RETURN(of_trials.emplace_back(), view->FindSeries(selections));
    count += of_trials.back().size();
    if (count > static_cast<std::size_t>(kReadSeriesMax)) {
      return absl::ResourceExhaustedError(
          absl::StrCat("over ", kReadSeriesMax, " series of the trials are chosen, limit ",
                       kReadSeriesMax, ": narrow the selectors by metric_group, name or labels"));
    }
  }
  return of_trials;
}

// One trial, and what of its bookkeeping the axis needs.
struct ComparedSide {
  TrialView& view;
  v1::Trial trial;
  TrialReach reach;
  BatchAttempts attempts;
};

absl::StatusOr<ComparedSide> OpenSide(TrialView& view, BucketAxis axis) {
  ComparedSide side{.view = view, .trial = view.Trial(), .reach = {}, .attempts = {}};
  side.reach.first_time_us = side.trial.first_sample_time_us();
  side.reach.last_time_us = side.trial.last_sample_time_us();
  if (axis == BucketAxis::kBatch) {
    STEPWELL_ASSIGN_OR_RETURN(side.attempts, ReadBatchAttempts(view));
    side.reach.end_batch = side.attempts.end_batch();
  }
  return side;
}

v1::CompareTrialsResponse::ComparedSeries Heading(const ComparedGroup& group) {
  v1::CompareTrialsResponse::ComparedSeries series;
  *series.mutable_key() = ToWire(group.key);
  series.set_unit(group.unit);
  series.set_kind(static_cast<v1::SeriesKind>(group.kind));
  for (const ComparedGroup::Side& side : group.sides) series.add_sides()->set_unit(side.unit);
  return series;
}

bool HasSamples(const v1::CompareTrialsResponse::ComparedSeries& series) {
  return std::any_of(series.sides().begin(), series.sides().end(),
                     [](const auto& side) { return side.count() > 0 || side.nan_count() > 0; });
}

// Buckets of time since start do not begin on the whole steps of rollups: they are of samples, and of the
// statistics of rows that lie in one. Only a bucket of the whole trial may be widened to whole steps.
BucketResolution ResolutionOf(const ComparedSide& side, const BucketPlan& plan,
                              const std::vector<SeriesGroup>& groups) {
  const BucketPlan of_trial = PlanOfTrial(plan, side.reach);
  if (!IsWhole(of_trial, side.reach)) return {.step_seconds = 0, .plan = of_trial};
  std::vector<AskedGroup> asked;
  for (std::string& name : MetricGroupsOf(groups)) asked.push_back({std::move(name)});
  return ChooseResolution(of_trial, /*buckets_max=*/1, v1::RESOLUTION_UNSPECIFIED,
                          side.view.usage(), asked);
}

absl::Status ReadSide(const ComparedSide& side, const BucketPlan& plan,
                      const std::vector<SeriesGroup>& groups, const BucketsSink& sink) {
  const BatchAttempts* attempts = plan.axis == BucketAxis::kBatch ? &side.attempts : nullptr;
  return ReadBuckets(side.view, groups, ResolutionOf(side, plan, groups), attempts, sink);
}

absl::Status ReadSides(const std::vector<ComparedSide>& sides, const BucketPlan& plan,
                       const std::vector<ComparedGroup>& groups, bool with_buckets,
                       v1::CompareTrialsResponse& response) {
  std::vector<v1::CompareTrialsResponse::ComparedSeries> compared;
  for (const ComparedGroup& group : groups) compared.push_back(Heading(group));
  for (std::size_t i = 0; i < sides.size(); ++i) {
    STEPWELL_RETURN_IF_ERROR(ReadSide(
        sides[i], plan, SideOf(groups, i),
        [&](std::size_t group, const std::vector<Bucket>& buckets) {
          SetStatistics(buckets, with_buckets, *compared[group].mutable_sides(static_cast<int>(i)));
        }));
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (!HasSamples(compared[i])) continue;
    SetDifferences(HaveUnitOfFirst(groups[i]), compared[i]);
    *response.add_series() = std::move(compared[i]);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::CompareTrialsResponse> QueryReads::CompareTrials(
    const v1::CompareTrialsRequest& request_untrusted, const ReadCall& call) const {
  STEPWELL_RETURN_IF_ERROR(CheckCompareRequest(request_untrusted));
  const BucketAxis axis = AxisOf(request_untrusted);
  STEPWELL_ASSIGN_OR_RETURN(
      const std::int32_t buckets_max,
      CheckSize("max_buckets", request_untrusted.max_buckets(), 1, kBucketsMax));
  STEPWELL_RETURN_IF_ERROR(CheckGroupBy(request_untrusted.group_by()));
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<SeriesSelection> selections,
                            CheckSelectors(request_untrusted.selectors()));
  STEPWELL_ASSIGN_OR_RETURN(const Views views,
                            TrialView::OpenAll(sources_, request_untrusted.trials(), call));
  STEPWELL_ASSIGN_OR_RETURN(const auto series, FindSeries(views, selections));
  const std::vector<ComparedGroup> groups = GroupTrials(
      series, {request_untrusted.group_by().begin(), request_untrusted.group_by().end()});

  std::vector<ComparedSide> sides;
  std::vector<TrialReach> reaches;
  for (const auto& view : views) {
    STEPWELL_ASSIGN_OR_RETURN(ComparedSide side, OpenSide(*view, axis));
    reaches.push_back(side.reach);
    sides.push_back(std::move(side));
  }
  const BucketPlan plan = PlanComparison(request_untrusted, reaches, buckets_max);
  STEPWELL_RETURN_IF_ERROR(CheckAnswerSize(groups.size(), views.size(), plan.bucket_count));

  v1::CompareTrialsResponse response;
  response.set_start(plan.start);
  response.set_width(plan.width);
  if (plan.bucket_count > 0) {
    STEPWELL_RETURN_IF_ERROR(ReadSides(sides, plan, groups, buckets_max > 1, response));
  }
  const std::string metric_group = selections.size() == 1 ? selections[0].metric_group : "";
  for (ComparedSide& side : sides) {
    const TimeBounds times = TimesOfTrial(request_untrusted, side.reach);
    auto& compared = *response.add_trials();
    compared.set_start_time_us(side.reach.first_time_us);
    STEPWELL_ASSIGN_OR_RETURN(
        *compared.mutable_completeness(),
        side.view.Completeness(metric_group, times.GapFirst(), times.GapLast()));
    if (axis == BucketAxis::kBatch) {
      STEPWELL_RETURN_IF_ERROR(
          PlaceGaps(side.view, side.attempts, *compared.mutable_completeness()));
    }
    *compared.mutable_trial() = std::move(side.trial);
  }
  return response;
}

}  // namespace stepwell
