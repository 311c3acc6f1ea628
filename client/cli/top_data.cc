#include "client/cli/top_data.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/cli/pages.h"
#include "client/cli/proto_json.h"
#include "client/cli/words.h"

namespace stepwell::cli {
namespace {

constexpr std::int64_t kSecondUs = 1'000'000;
constexpr char kTimingGroup[] = "timing";
constexpr char kStepName[] = "step";
// More live trials than that are not asked whether they run on one machine.
constexpr std::int64_t kMachineTrialsMax = 32;

v1::TrialRef RefOf(const v1::Trial& trial) {
  v1::TrialRef ref;
  ref.set_trial_id(trial.trial_id());
  return ref;
}

TopMetric MetricOf(const v1::LatestValuesResponse::Value& value) {
  const v1::SeriesKey& key = value.series().key();
  TopMetric metric;
  metric.group = key.metric_group();
  metric.name = key.name();
  metric.unit = value.series().unit();
  metric.labels = {key.labels().begin(), key.labels().end()};
  metric.value = value.value();
  metric.time_us = value.time_us();
  return metric;
}

bool ShownBefore(const TopMetric& a, const TopMetric& b) {
  return std::tie(a.group, a.name, a.labels) < std::tie(b.group, b.name, b.labels);
}

// A writer with an absurd clock does not say what "lately" is.
std::int64_t BelievedUs(std::int64_t time_us, std::int64_t answered_us) {
  return time_us > answered_us + 3600 * kSecondUs ? answered_us : time_us;
}

// A tick of a machine is stored once for each live trial on it: the newest is shown, once.
void AddMetric(TopMetric metric, std::vector<TopMetric>& metrics) {
  const auto place = std::lower_bound(metrics.begin(), metrics.end(), metric, ShownBefore);
  if (place == metrics.end() || ShownBefore(metric, *place)) {
    metrics.insert(place, std::move(metric));
  } else if (metric.time_us > place->time_us) {
    *place = std::move(metric);
  }
}

}  // namespace

std::vector<double> HistoryOf(const v1::QueryBucketsResponse::BucketSeries& series,
                              std::int64_t start_us, std::int64_t width_us,
                              std::int64_t bucket_us) {
  std::vector<double> means(kTopBuckets, std::nan(""));
  for (int i = 0; i < series.indexes_size(); ++i) {
    const std::int64_t from_us = start_us + series.indexes(i) * width_us;
    for (std::int64_t at_us = std::max<std::int64_t>(from_us, 0); at_us < from_us + width_us;
         at_us += bucket_us) {
      if (at_us / bucket_us < kTopBuckets) {
        means[static_cast<std::size_t>(at_us / bucket_us)] = series.means(i);
      }
    }
  }
  return means;
}

std::int64_t IntervalOf(const v1::QueryBucketsResponse::BucketSeries& series,
                        std::int64_t width_us) {
  std::vector<std::int64_t> distances;
  for (int i = 1; i < series.indexes_size(); ++i) {
    distances.push_back(std::int64_t{series.indexes(i)} - series.indexes(i - 1));
  }
  if (distances.empty()) return 0;
  const auto middle = distances.begin() + std::ssize(distances) / 2;
  std::nth_element(distances.begin(), middle, distances.end());
  return *middle * width_us;
}

absl::Status TopReader::ChooseTrial() {
  if (!target_.any_trial()) return absl::OkStatus();
  v1::ListTrialsRequest request;
  request.set_state(v1::TRIAL_STATE_RUNNING);
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<v1::Trial> running, ReadTrials(master_, request, 1));
  if (running.empty()) {
    return absl::NotFoundError("no trial is running; 'stepwell top TRIAL' shows one that ended");
  }
  target_.trial = RefOf(running.front());
  return absl::OkStatus();
}

absl::StatusOr<TopData> TopReader::Read() {
  if (!target_.machine.empty()) return ReadMachine();
  STEPWELL_RETURN_IF_ERROR(ChooseTrial());
  v1::GetTrialRequest get;
  *get.mutable_trial() = target_.trial;
  STEPWELL_ASSIGN_OR_RETURN(const v1::GetTrialResponse found, master_.GetTrial(get));
  TopData data;
  data.trials.emplace_back().trial = found.trial();
  if (found.has_profiling()) data.trials.front().profiling = found.profiling();
  // A young trial's minute is more than a corner of five.
  const std::int64_t age_us =
      found.trial().last_sample_time_us() - found.trial().first_sample_time_us();
  const std::int64_t bucket_seconds =
      std::clamp<std::int64_t>(age_us / (kTopBuckets * kSecondUs) + 1, 1, kTopBucketSecondsMax);
  data.history_seconds = static_cast<int>(kTopBuckets * bucket_seconds);
  STEPWELL_RETURN_IF_ERROR(ReadValues(v1::SeriesSelector(), data.trials.front(), data).status());
  STEPWELL_RETURN_IF_ERROR(ReadTimings(data.trials.front(), data.answered_time_us));
  return data;
}

absl::StatusOr<TopData> TopReader::ReadMachine() {
  v1::ListTrialsRequest request;
  request.set_state(v1::TRIAL_STATE_RUNNING);
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<v1::Trial> running,
                            ReadTrials(master_, request, kMachineTrialsMax));
  TopData data;
  data.machine = target_.machine;
  v1::SeriesSelector selector;
  (*selector.mutable_labels())["agent"] = target_.machine;
  for (const v1::Trial& trial : running) {
    TopTrial top;
    top.trial = trial;
    STEPWELL_ASSIGN_OR_RETURN(const bool any, ReadValues(selector, top, data));
    if (!any) continue;
    STEPWELL_RETURN_IF_ERROR(ReadTimings(top, data.answered_time_us));
    data.trials.push_back(std::move(top));
  }
  if (!data.trials.empty()) return data;
  return absl::NotFoundError(absl::StrCat("no running trial has samples of the machine '",
                                          target_.machine,
                                          "'; 'stepwell top TRIAL' shows the machines of a trial"));
}

absl::StatusOr<bool> TopReader::ReadValues(const v1::SeriesSelector& selector, TopTrial& top,
                                           TopData& data) {
  v1::LatestValuesRequest request;
  *request.mutable_trial() = RefOf(top.trial);
  *request.mutable_selector() = selector;
  STEPWELL_ASSIGN_OR_RETURN(const v1::LatestValuesResponse latest, master_.LatestValues(request));
  data.answered_time_us = std::max(data.answered_time_us, latest.completeness().answered_time_us());
  const std::int64_t bucket_us = data.history_seconds * kSecondUs / kTopBuckets;
  STEPWELL_ASSIGN_OR_RETURN(const History* history,
                            ReadHistory(top.trial, selector, latest, bucket_us));
  for (const auto& value : latest.values()) {
    const v1::SeriesKey& key = value.series().key();
    if (key.metric_group() == kTimingGroup) {
      if (key.name() == kStepName) top.batch = std::max(top.batch, value.batch());
      continue;
    }
    TopMetric metric = MetricOf(value);
    if (const auto found = history->find(value.series().series_no()); found != history->end()) {
      metric.history = found->second.means;
      metric.interval_us = found->second.interval_us;
    }
    const bool of_process = metric.labels.contains("rank");
    if (!data.machine.empty() && of_process) metric.labels["trial"] = TrialName(top.trial);
    AddMetric(std::move(metric), data.metrics);
  }
  return latest.values_size() > 0;
}

absl::Status TopReader::ReadTimings(TopTrial& top, std::int64_t answered_us) {
  v1::SummarizeTimingsRequest request;
  *request.mutable_trial() = RefOf(top.trial);
  const std::int64_t newest_us = BelievedUs(top.trial.last_sample_time_us(), answered_us);
  if (newest_us > 0) {
    request.mutable_time_range()->set_start_time_us(
        std::max<std::int64_t>(1, newest_us - kTopStepSeconds * kSecondUs));
    STEPWELL_ASSIGN_OR_RETURN(top.timings, master_.SummarizeTimings(request));
    top.is_recent = top.timings.ranks_size() > 0;
    if (top.is_recent) return absl::OkStatus();
    request.clear_time_range();
  }
  STEPWELL_ASSIGN_OR_RETURN(top.timings, master_.SummarizeTimings(request));
  return absl::OkStatus();
}

absl::StatusOr<const TopReader::History*> TopReader::ReadHistory(
    const v1::Trial& trial, const v1::SeriesSelector& selector,
    const v1::LatestValuesResponse& latest, std::int64_t bucket_us) {
  std::int64_t newest_us = 0;
  const std::int64_t answered_us = latest.completeness().answered_time_us();
  // Timings have no sparklines, and where steps are short they are most of the samples.
  std::set<std::string> groups;
  for (const auto& value : latest.values()) {
    if (value.series().key().metric_group() == kTimingGroup) continue;
    newest_us = std::max(newest_us, BelievedUs(value.time_us(), answered_us));
    groups.insert(value.series().key().metric_group());
  }
  Remembered& known = remembered_[trial.trial_id()];
  if (groups.empty() || newest_us - known.newest_us < bucket_us) return &known.history;
  v1::QueryBucketsRequest request;
  *request.mutable_trial() = RefOf(trial);
  for (const std::string& group : groups) {
    v1::SeriesSelector& one = *request.add_selectors();
    one = selector;
    one.set_metric_group(group);
  }
  request.set_max_buckets(kTopBuckets);
  // To the end of the bucket that the newest sample lies in.
  const std::int64_t end_us = (newest_us / bucket_us + 1) * bucket_us;
  const std::int64_t start_us = std::max<std::int64_t>(1, end_us - kTopBuckets * bucket_us);
  request.mutable_time_range()->set_start_time_us(start_us);
  request.mutable_time_range()->set_end_time_us(end_us);
  STEPWELL_ASSIGN_OR_RETURN(const v1::QueryBucketsResponse response, master_.QueryBuckets(request));
  known.newest_us = newest_us;
  known.history.clear();
  for (const auto& series : response.series()) {
    if (series.series_nos_size() != 1) continue;
    known.history[series.series_nos(0)] = {
        HistoryOf(series, response.start() - start_us, response.width(), bucket_us),
        IntervalOf(series, response.width())};
  }
  return &known.history;
}

nlohmann::ordered_json ToJson(const TopData& data) {
  using nlohmann::ordered_json;
  ordered_json json = ordered_json::object();
  json["trials"] = ordered_json::array();
  for (const TopTrial& top : data.trials) {
    ordered_json one = ordered_json::object();
    one["trial"] = ToJson(top.trial);
    one["profiling"] = ToJson(top.profiling);
    one["batch"] = top.batch;
    one["steps_are_recent"] = top.is_recent;
    const ordered_json timings = ToJson(top.timings);
    for (const char* field : {"attempt", "ranks", "timings"}) one[field] = timings[field];
    json["trials"].push_back(std::move(one));
  }
  json["machine"] = data.machine;
  json["metrics"] = ordered_json::array();
  for (const TopMetric& metric : data.metrics) {
    ordered_json one = ordered_json::object();
    one["metric_group"] = metric.group;
    one["name"] = metric.name;
    one["labels"] = metric.labels;
    one["unit"] = metric.unit;
    one["time_us"] = metric.time_us;
    one["value"] = NumberJson(metric.value);
    json["metrics"].push_back(std::move(one));
  }
  json["answered_time_us"] = data.answered_time_us;
  return json;
}

}  // namespace stepwell::cli
