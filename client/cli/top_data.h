// TopData: what `stepwell top` shows of one moment, of a trial or of a machine, as the master
// answered it. The number of calls does not grow with a trial's length; those for history are not
// made at each look.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/master_client.h"
#include "client/cli/top_metric.h"
#include "client/cli/words.h"
#include "nlohmann/json.hpp"
#include "stepwell/v1/query.pb.h"

namespace stepwell::cli {

// What "now" means for shares of the step.
inline constexpr int kTopStepSeconds = 60;

// Where the steps of a trial's lowest rank are, and what they did lately.
struct TopTrial {
  v1::Trial trial;
  // What its writers were asked to record; on, and nothing else, where nobody asked, and on a machine.
  v1::TrialProfiling profiling = Unrestrained();
  v1::SummarizeTimingsResponse timings;
  // Of the last kTopStepSeconds; false: no step ended in it, so it is of the whole attempt.
  bool is_recent = false;
  // Of the newest step; -1 = none.
  std::int32_t batch = -1;
};

struct TopData {
  // One, or with `machine` those that run on it, newest first.
  std::vector<TopTrial> trials;
  // Set: the trials and the metrics are of this machine.
  std::string machine;
  // By group, name and labels. On a machine those of a process have the label `trial` as well.
  std::vector<TopMetric> metrics;
  // What each metric's history covers.
  int history_seconds = kTopBuckets * kTopBucketSecondsMax;
  // When the master answered, by its clock.
  std::int64_t answered_time_us = 0;
};

// Which trial or machine. Neither: the newest trial that is running.
struct TopTarget {
  v1::TrialRef trial;
  std::string machine;
  bool any_trial() const {
    return machine.empty() && trial.trial_id() == 0 && trial.external_id().empty();
  }
};

// Reads the same target again and again. Confined to one thread.
class TopReader {
 public:
  // `master` outlives the reader.
  TopReader(MasterClient& master, TopTarget target) : master_(master), target_(std::move(target)) {}

  // kNotFound: there is no such trial, none is running, or the machine is unknown.
  [[nodiscard]] absl::StatusOr<TopData> Read();
  // With the trial that was chosen, once one was.
  const TopTarget& target() const { return target_; }

 private:
  struct Lately {
    std::vector<double> means;
    std::int64_t interval_us = 0;
  };
  using History = std::map<std::int32_t, Lately>;  // by series number
  [[nodiscard]] absl::Status ChooseTrial();
  [[nodiscard]] absl::StatusOr<TopData> ReadMachine();
  // All but timings; false: no series of the trial matches.
  [[nodiscard]] absl::StatusOr<bool> ReadValues(const v1::SeriesSelector& selector, TopTrial& top,
                                                TopData& data);
  [[nodiscard]] absl::Status ReadTimings(TopTrial& top, std::int64_t answered_us);
  // At most a bucket's width old.
  [[nodiscard]] absl::StatusOr<const History*> ReadHistory(const v1::Trial& trial,
                                                           const v1::SeriesSelector& selector,
                                                           const v1::LatestValuesResponse& latest,
                                                           std::int64_t bucket_us);

  MasterClient& master_;
  TopTarget target_;
  struct Remembered {
    std::int64_t newest_us = 0;
    History history;
  };
  std::map<std::int64_t, Remembered> remembered_;  // by trial
};

// {"trials": [...], "machine": "", "metrics": [...], "answered_time_us": 0}
nlohmann::ordered_json ToJson(const TopData& data);

// The means of `series` in kTopBuckets parts of `bucket_us` each. `start_us` is that of the answer's
// first bucket behind that of the first part; the answer's buckets, of `width_us`, may be wider.
std::vector<double> HistoryOf(const v1::QueryBucketsResponse::BucketSeries& series,
                              std::int64_t start_us, std::int64_t width_us, std::int64_t bucket_us);

// Of the distances between buckets with samples the middle one, a bucket's width at least; 0 = there
// are not two of them.
std::int64_t IntervalOf(const v1::QueryBucketsResponse::BucketSeries& series,
                        std::int64_t width_us);

}  // namespace stepwell::cli
