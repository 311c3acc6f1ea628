#include "bench/load/pairs.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench/load/bench_run.h"

namespace stepwell::bench {
namespace {

void PrintLine(nlohmann::json line, const Bar& bar, const std::vector<double>& runs) {
  line["bar"] = bar.text;
  line["promised"] = bar.promised;
  line["n"] = runs.size();
  line["spread"] = {*std::min_element(runs.begin(), runs.end()),
                    *std::max_element(runs.begin(), runs.end())};
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

}  // namespace

void PrintRatio(const std::string& name, const std::string& against, const Bar& bar,
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
             {"raw", {{"ours", ours}, {"theirs", theirs}}}},
            bar, ratios);
}

void PrintOurs(const std::string& name, const std::string& unit, const std::string& against,
               const Bar& bar, const std::vector<double>& runs) {
  PrintLine({{"name", name}, {"value", Median(runs)}, {"unit", unit}, {"against", against}}, bar,
            runs);
}

void PrintOnce(const std::string& name, const std::string& unit, const std::string& against,
               const Bar& bar, double value, const std::string& once) {
  PrintLine(
      {{"name", name}, {"value", value}, {"unit", unit}, {"against", against}, {"once", once}}, bar,
      {value});
}

void PrintSizes(const std::string& name, const std::string& against, const Bar& bar, double ours,
                double theirs) {
  PrintLine({{"name", name},
             {"value", ours / theirs},
             {"unit", "ratio"},
             {"against", against},
             {"once", "what lies on the disk at one moment"},
             {"raw", {{"ours", ours}, {"theirs", theirs}}}},
            bar, {ours / theirs});
}

}  // namespace stepwell::bench
