#include "client/cli/report_data.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/status_macros.h"
#include "client/cli/pages.h"

namespace stepwell::cli {
namespace {

constexpr char kTimingGroup[] = "timing";

// Every metric group of the trial but timing.
absl::StatusOr<std::set<std::string>> ReadGroups(MasterClient& master, const v1::TrialRef& ref) {
  std::set<std::string> groups;
  v1::ListSeriesRequest request;
  *request.mutable_trial() = ref;
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<v1::Series> all,
                            ReadSeries(master, std::move(request), kNoLimit));
  for (const v1::Series& series : all) groups.insert(series.key().metric_group());
  groups.erase(kTimingGroup);
  return groups;
}

using BucketSeries = v1::QueryBucketsResponse::BucketSeries;

bool ShownBefore(const BucketSeries& a, const BucketSeries& b) {
  const auto key = [](const BucketSeries& series) {
    return std::tuple(series.key().metric_group(), series.key().name(),
                      std::map<std::string, std::string>(series.key().labels().begin(),
                                                         series.key().labels().end()));
  };
  return key(a) < key(b);
}

absl::StatusOr<std::vector<BucketSeries>> ReadMetrics(MasterClient& master,
                                                      const v1::TrialRef& ref) {
  STEPWELL_ASSIGN_OR_RETURN(const std::set<std::string> groups, ReadGroups(master, ref));
  std::vector<BucketSeries> metrics;
  if (groups.empty()) return metrics;
  v1::QueryBucketsRequest request;
  *request.mutable_trial() = ref;
  request.set_max_buckets(1);
  for (const std::string& group : groups) request.add_selectors()->set_metric_group(group);
  STEPWELL_ASSIGN_OR_RETURN(v1::QueryBucketsResponse response, master.QueryBuckets(request));
  for (BucketSeries& series : *response.mutable_series()) metrics.push_back(std::move(series));
  std::sort(metrics.begin(), metrics.end(), ShownBefore);
  return metrics;
}

}  // namespace

absl::StatusOr<ReportData> ReadReport(MasterClient& master, const v1::TrialRef& ref, int attempt) {
  ReportData data;
  v1::GetTrialRequest get;
  *get.mutable_trial() = ref;
  STEPWELL_ASSIGN_OR_RETURN(v1::GetTrialResponse trial, master.GetTrial(get));
  data.trial = std::move(*trial.mutable_trial());
  data.writers.assign(trial.writers().begin(), trial.writers().end());
  data.completeness = std::move(*trial.mutable_completeness());
  if (trial.has_profiling()) data.profiling = std::move(*trial.mutable_profiling());
  v1::SummarizeTimingsRequest summarize;
  *summarize.mutable_trial() = ref;
  summarize.set_attempt(attempt);
  STEPWELL_ASSIGN_OR_RETURN(data.timings, master.SummarizeTimings(summarize));
  STEPWELL_ASSIGN_OR_RETURN(data.metrics, ReadMetrics(master, ref));
  return data;
}

}  // namespace stepwell::cli
