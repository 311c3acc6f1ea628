// TopSections: metrics under titles, all in the same columns: each line a name with the labels that tell
// it apart, its value, a bar where there is a whole to compare with, and a sparkline. A value that its machine has
// not sampled any more is not shown as if it were of now: its age stands there. Pure.
#pragma once

#include <string>
#include <vector>

#include "client/cli/top_data.h"
#include "client/cli/top_line.h"

namespace stepwell::cli {

struct TopSection {
  std::string title;
  // Of TopData::metrics.
  std::vector<const TopMetric*> metrics;
};

// Sections without metrics have no lines.
std::vector<std::string> TopSectionLines(const std::vector<TopSection>& sections,
                                         const TopData& data, const TopLook& look);

}  // namespace stepwell::cli
