// TopMetrics: the metrics of a frame, in sections, each line a name, its value, a bar where there is a
// whole to compare with, and a sparkline. Pure.
#pragma once

#include <string>
#include <vector>

#include "client/cli/top_data.h"
#include "client/cli/top_line.h"

namespace stepwell::cli {

// "Training", then each machine with its GPUs and processes; of a machine it comes last. Without `look.all_metrics` only those
// that most people look for.
std::vector<std::string> TopMetricLines(const TopData& data, const TopLook& look);

}  // namespace stepwell::cli
