// CompareMaker: an answer of CompareTrials, made series by series. Header only.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/compare_data.h"

namespace stepwell::cli {

class CompareMaker {
 public:
  // Of a trial whose series have not one unit.
  static constexpr char kSeveralUnits[] = "several";
  static constexpr std::int64_t kStartUs = 1'763'632'882'000'000;  // 2025-11-20 10:01:22 UTC

  explicit CompareMaker(const std::vector<std::string>& trials) {
    for (const std::string& name : trials) {
      auto& compared = *data_.answer.add_trials();
      v1::Trial& trial = *compared.mutable_trial();
      trial.set_trial_id(1'000'000'000 + data_.answer.trials_size());
      trial.set_project("default");
      trial.set_external_id(name);
      trial.set_state(v1::TRIAL_STATE_COMPLETED);
      trial.set_sample_count(123'456);
      trial.set_first_sample_time_us(kStartUs);
      trial.set_last_sample_time_us(kStartUs + 91'700'000);
      compared.set_start_time_us(kStartUs);
      compared.mutable_completeness()->set_samples_held(123'456);
      compared.mutable_completeness()->set_contiguous(true);
      data_.rank_counts.push_back(1);
    }
    data_.answer.set_width(1200);
  }

  // The means of each trial; none = it has no samples. As the master does it. `units`: of each trial, where
  // they are not all `unit`.
  void Add(const std::string& group, const std::string& name, const std::string& unit,
           const std::vector<std::optional<double>>& means, std::uint64_t count = 1200,
           const std::map<std::string, std::string>& labels = {},
           const std::vector<std::string>& units = {}) {
    auto& series = *data_.answer.add_series();
    series.mutable_key()->set_metric_group(group);
    series.mutable_key()->set_name(name);
    series.mutable_key()->mutable_labels()->insert(labels.begin(), labels.end());
    series.set_unit(unit);
    const bool is_count = name.size() > 6 && name.substr(name.size() - 6) == ".count";
    series.set_kind(group == "timing" && !is_count ? v1::SERIES_KIND_DURATION
                                                   : v1::SERIES_KIND_GAUGE);
    for (std::size_t i = 0; i < means.size(); ++i) {
      auto& side = *series.add_sides();
      const std::string& own = units.empty() ? unit : units.at(i);
      if (own != kSeveralUnits) side.set_unit(own);
      if (!means[i]) continue;
      side.set_count(count);
      side.set_mean(*means[i]);
      if (i == 0) side.set_mean_ratio(1);
      const bool has_units_of_first = units.empty() || (own == units[0] && own != kSeveralUnits);
      if (i == 0 || !means[0] || !has_units_of_first) continue;
      side.set_mean_difference(*means[i] - *means[0]);
      if (*means[0] != 0) side.set_mean_ratio(*means[i] / *means[0]);
    }
  }
  void AddTiming(const std::string& name, const std::vector<std::optional<double>>& means,
                 std::uint64_t count = 1200,
                 const std::map<std::string, std::string>& labels = {}) {
    Add("timing", name, "seconds", means, count, labels);
  }

  CompareData& data() { return data_; }

 private:
  CompareData data_;
};

}  // namespace stepwell::cli
