// TopView: the lines of `stepwell top`, from what was read of the master. Pure; tested against golden
// files at several widths.
//
//   lines = TopWindow(TopFrame(data, outage, look), rows, look, skip);
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

// No line is wider than `look.columns`.
std::vector<std::string> TopFrame(const TopData& data, const TopOutage& outage,
                                  const TopLook& look);

// What `rows` have room for of a frame: its first line, and the others from `skip` on; what is hidden
// is counted in the last row. Puts `skip` where there is something to see. REQUIRES: rows > 0.
std::vector<std::string> TopWindow(std::vector<std::string> lines, int rows, const TopLook& look,
                                   int& skip);

}  // namespace stepwell::cli
