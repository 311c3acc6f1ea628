// TopView: the lines of `stepwell top`, from what was read of the master. Pure; tested against golden
// files at several widths.
//
//   for (const std::string& line : TopFrame(data, outage, look)) ...
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/top_data.h"
#include "client/cli/top_line.h"

namespace stepwell::cli {

// Since when the master does not answer, and what it said last.
struct TopOutage {
  std::int64_t since_us = 0;  // 0 = it answers
  std::string reason;
};

// No line is wider than `look.columns`, and there are no more than `look.rows` (where that is not 0):
// what does not fit is counted in the last one.
std::vector<std::string> TopFrame(const TopData& data, const TopOutage& outage,
                                  const TopLook& look);

}  // namespace stepwell::cli
