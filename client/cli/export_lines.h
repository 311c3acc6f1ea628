// ExportLines: samples as lines of CSV or of JSON, such that each number and each text can be read back
// exactly. Confined to one thread.
//
//   ExportLines lines(ExportFormat::kCsv);
//   std::string text(lines.header());
//   lines.Append(response, text);
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "stepwell/v1/query.pb.h"

namespace stepwell::cli {

enum class ExportFormat { kCsv, kJsonLines };

class ExportLines {
 public:
  explicit ExportLines(ExportFormat format) : format_(format) {}

  // The first line of CSV; empty for JSON.
  std::string_view header() const;
  // The samples of one message, in its order.
  void Append(const v1::ReadSamplesResponse& response, std::string& text);

 private:
  void AppendCsv(const v1::ReadSamplesResponse& response, std::string& text);
  void AppendJson(const v1::ReadSamplesResponse& response, std::string& text) const;
  // "2026-11-20T10:01:22.123456Z".
  void AppendTime(std::int64_t time_us, std::string& text);

  const ExportFormat format_;
  // Most samples share their second with the one before.
  std::int64_t second_ = INT64_MIN;
  std::string second_text_;
};

// The shortest text that reads back as the same number; NaN, Infinity and -Infinity where it is none.
void AppendNumber(double value, std::string& text);
// RFC 4180: quoted where it must be.
std::string CsvField(const std::string& text);

}  // namespace stepwell::cli
