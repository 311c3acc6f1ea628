#include "client/cli/samples_view.h"

#include "absl/strings/str_cat.h"
#include "client/cli/completeness_text.h"
#include "client/cli/proto_json.h"
#include "client/cli/units.h"
#include "client/cli/words.h"
#include "fmt/format.h"

namespace stepwell::cli {

std::string SeriesName(const v1::Series& series) {
  const std::string labels = LabelsText(series.key().labels());
  return absl::StrCat(Printable(series.key().metric_group()), "/", Printable(series.key().name()),
                      labels.empty() ? "" : absl::StrCat("{", labels, "}"));
}

std::string SampleLine(SamplesView::Form form, const std::string& series,
                       const SampleFields& fields) {
  if (form == SamplesView::Form::kText) {
    const std::string batch = fields.batch < 0 ? "-" : absl::StrCat(fields.batch);
    return fmt::format("{}  {:>8}  {:>24}  {}\n", IsoTimeText(fields.time_us), batch, fields.value,
                       series);
  }
  nlohmann::ordered_json line = {{"series_no", fields.series_no},     {"series", series},
                                 {"time_us", fields.time_us},         {"batch", fields.batch},
                                 {"value", NumberJson(fields.value)}, {"attempt", fields.attempt}};
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string SamplesView::Lines(const v1::ReadSamplesResponse& response) {
  if (response.has_completeness()) completeness_ = response.completeness();
  std::string lines;
  const std::string series = SeriesName(response.series());
  for (int i = 0; i < response.values_size(); ++i) {
    if (count_ == limit_) {
      full_ = true;
      break;
    }
    lines += SampleLine(form_, series,
                        {.series_no = response.series().series_no(),
                         .time_us = response.timestamps_us(i),
                         .batch = response.batches(i),
                         .value = response.values(i),
                         .attempt = response.attempts(response.attempts_size() == 1 ? 0 : i)});
    ++count_;
    if (series != last_series_) {
      last_series_ = series;
      ++series_count_;
    }
  }
  return lines;
}

std::string SamplesView::Ending() const {
  if (full_) {
    return absl::StrCat("stopped after ", Plural(limit_, "sample"),
                        series_count_ == 1 ? ", all of the first series that matches" : "",
                        "; --group, --name and --label choose, --limit 0 prints all\n");
  }
  if (completeness_.contiguous()) return {};
  return CompletenessText(completeness_) + "\n";
}

}  // namespace stepwell::cli
