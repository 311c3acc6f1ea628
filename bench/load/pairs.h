// Pairs: what was measured of both sides in turns, and the lines that say so (bench/README.md).
#pragma once

#include <string>
#include <vector>

#include "bench/load/bar.h"

namespace stepwell::bench {

struct Pairs {
  std::vector<double> ours;
  std::vector<double> theirs;
};

// The ratio of the medians; its spread is that of the pairs.
void PrintRatio(const std::string& name, const std::string& against, const Bar& bar,
                const Pairs& pairs);
// Ours alone.
void PrintOurs(const std::string& name, const std::string& unit, const std::string& against,
               const Bar& bar, const std::vector<double>& runs);
// One figure that is not repeated; `once` says why.
void PrintOnce(const std::string& name, const std::string& unit, const std::string& against,
               const Bar& bar, double value, const std::string& once);
// Two sizes at one moment: there is nothing to repeat.
void PrintSizes(const std::string& name, const std::string& against, const Bar& bar, double ours,
                double theirs);

}  // namespace stepwell::bench
