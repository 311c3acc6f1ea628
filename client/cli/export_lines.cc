#include "client/cli/export_lines.h"

#include <cmath>
#include <iterator>

#include "absl/time/time.h"
#include "client/cli/proto_json.h"
#include "client/cli/words.h"
#include "fmt/format.h"

namespace stepwell::cli {
namespace {

constexpr std::int64_t kSecondUs = 1'000'000;

std::string Dump(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

int AttemptOf(const v1::ReadSamplesResponse& response, int i) {
  return response.attempts(response.attempts_size() == 1 ? 0 : i);
}

}  // namespace

void AppendNumber(double value, std::string& text) {
  if (std::isnan(value)) {
    text += "NaN";
  } else if (std::isinf(value)) {
    text += value > 0 ? "Infinity" : "-Infinity";
  } else if (value == 0 && std::signbit(value)) {
    text += "-0.0";  // "-0" is an integer to readers of JSON, and loses its sign
  } else {
    fmt::format_to(std::back_inserter(text), "{}", value);
  }
}

std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string_view ExportLines::header() const {
  switch (format_) {
    case ExportFormat::kCsv:
      return "timestamp,batch,value,attempt,metric_group,name,labels,unit\n";
    case ExportFormat::kJsonLines:
      return "";
  }
  return "";
}

void ExportLines::Append(const v1::ReadSamplesResponse& response, std::string& text) {
  switch (format_) {
    case ExportFormat::kCsv:
      return AppendCsv(response, text);
    case ExportFormat::kJsonLines:
      return AppendJson(response, text);
  }
}

void ExportLines::AppendTime(std::int64_t time_us, std::string& text) {
  std::int64_t second = time_us / kSecondUs;
  if (time_us % kSecondUs < 0) --second;
  if (second != second_) {
    second_ = second;
    second_text_ =
        absl::FormatTime("%Y-%m-%dT%H:%M:%S", absl::FromUnixSeconds(second), absl::UTCTimeZone());
  }
  fmt::format_to(std::back_inserter(text), "{}.{:06}Z", second_text_, time_us - second * kSecondUs);
}

void ExportLines::AppendCsv(const v1::ReadSamplesResponse& response, std::string& text) {
  const v1::SeriesKey& key = response.series().key();
  const std::string series =
      fmt::format(",{},{},{},{}\n", CsvField(key.metric_group()), CsvField(key.name()),
                  CsvField(Dump(ToJson(key)["labels"])), CsvField(response.series().unit()));
  for (int i = 0; i < response.values_size(); ++i) {
    AppendTime(response.timestamps_us(i), text);
    text += ',';
    if (response.batches(i) >= 0) {
      fmt::format_to(std::back_inserter(text), "{}", response.batches(i));
    }
    text += ',';
    AppendNumber(response.values(i), text);
    fmt::format_to(std::back_inserter(text), ",{}{}", AttemptOf(response, i), series);
  }
}

void ExportLines::AppendJson(const v1::ReadSamplesResponse& response, std::string& text) const {
  const nlohmann::ordered_json key = ToJson(response.series().key());
  nlohmann::ordered_json series = {{"series_no", response.series().series_no()}};
  series.update(key);
  series["unit"] = response.series().unit();
  series["kind"] = KindWord(response.series().kind());
  std::string begin = Dump(series);
  begin.pop_back();  // what is the sample's own follows
  for (int i = 0; i < response.values_size(); ++i) {
    const bool is_number = std::isfinite(response.values(i));
    fmt::format_to(std::back_inserter(text), R"({},"time_us":{},"batch":{},"value":{})", begin,
                   response.timestamps_us(i), response.batches(i), is_number ? "" : "\"");
    AppendNumber(response.values(i), text);
    fmt::format_to(std::back_inserter(text), R"({},"attempt":{}}})", is_number ? "" : "\"",
                   AttemptOf(response, i));
    text += '\n';
  }
}

}  // namespace stepwell::cli
