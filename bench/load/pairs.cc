#include "bench/load/pairs.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench/load/bench_run.h"

namespace stepwell::bench {
namespace {

void PrintLine(nlohmann::json line, const std::vector<double>& runs) {
  line["n"] = runs.size();
  line["spread"] = {*std::min_element(runs.begin(), runs.end()),
                    *std::max_element(runs.begin(), runs.end())};
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

}  // namespace

void PrintRatio(const std::string& name, const std::string& against, const std::string& bar,
                const Pairs& pairs) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < pairs.ours.size(); ++i)
    ratios.push_back(pairs.ours[i] / pairs.theirs[i]);
  const double ours = Median(pairs.ours);
  const double theirs = Median(pairs.theirs);
  PrintLine({{"name", name},
             {"value", ours / theirs},
             {"unit", "ratio"},
             {"against", against},
             {"bar", bar},
             {"raw", {{"ours", ours}, {"theirs", theirs}}}},
            ratios);
}

void PrintOurs(const std::string& name, const std::string& unit, const std::string& against,
               const std::string& bar, const std::vector<double>& runs) {
  PrintLine(
      {{"name", name}, {"value", Median(runs)}, {"unit", unit}, {"against", against}, {"bar", bar}},
      runs);
}

void PrintSizes(const std::string& name, const std::string& against, const std::string& bar,
                double ours, double theirs) {
  PrintRatio(name, against, bar, {{ours, ours, ours}, {theirs, theirs, theirs}});
}

}  // namespace stepwell::bench
