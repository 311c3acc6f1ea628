#include "client/cli/followed_view.h"

#include <algorithm>
#include <vector>

namespace stepwell::cli {

std::string FollowedView::Lines(const v1::FollowSamplesResponse& response) {
  for (const v1::Series& series : response.series()) {
    names_[series.series_no()] = SeriesName(series);
  }
  struct Timed {
    std::int64_t time_us;
    std::string line;
  };
  std::vector<Timed> all;
  for (const auto& samples : response.samples()) {
    const std::string& name = names_[samples.series_no()];
    for (int i = 0; i < samples.values_size(); ++i) {
      const SampleFields fields{.series_no = samples.series_no(),
                                .time_us = samples.timestamps_us(i),
                                .batch = samples.batches(i),
                                .value = samples.values(i),
                                .attempt = samples.attempts(samples.attempts_size() == 1 ? 0 : i)};
      all.push_back({fields.time_us, SampleLine(form_, name, fields)});
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Timed& a, const Timed& b) { return a.time_us < b.time_us; });
  std::string lines;
  for (const Timed& one : all) {
    if (full()) break;
    lines += one.line;
    ++count_;
  }
  return lines;
}

}  // namespace stepwell::cli
