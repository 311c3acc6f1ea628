// ReportView: the text and the JSON of `stepwell report`. Pure functions, tested against golden
// files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "client/cli/report_data.h"
#include "client/cli/terminal.h"

namespace stepwell::cli {

struct ReportOptions {
  // Only this rank; none = all, but no more than ranks_max of them.
  std::optional<std::int32_t> rank;
  int ranks_max = 8;
};

// Whether the attempt has timings of options.rank; true where none is asked for.
bool HasRank(const ReportData& data, const ReportOptions& options);

// For who asked for one that is not there: "it has those of ranks 0 to 3, 7"; of many stretches the first.
std::string KnownRanksText(const ReportData& data);

std::string ReportText(const ReportData& data, const ReportOptions& options, const Paint& paint);
std::string ReportJson(const ReportData& data, const ReportOptions& options);

}  // namespace stepwell::cli
