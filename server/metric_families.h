// MetricFamilies: metrics in Prometheus' text format (0.0.4), each name once with all of its lines. A core.
//
//   families.Add({"stepwell_writers", "Writers that are open.", MetricType::kGauge}, 5);
//   response.body = families.Text();
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace stepwell {

inline constexpr char kMetricsContentType[] = "text/plain; version=0.0.4; charset=utf-8";

enum class MetricType { kCounter, kGauge, kHistogram };

struct MetricName {
  std::string name;
  std::string help;
  MetricType type = MetricType::kGauge;
};

// In the order in which they are written.
using MetricLabels = std::vector<std::pair<std::string, std::string>>;

struct MetricHistogram {
  // Ascending; what is equal to a bound is below it.
  std::vector<double> bounds;
  // Of each bucket alone: one for each bound, and one for what is beyond them.
  std::vector<std::uint64_t> counts;
  double sum = 0;
};

class MetricFamilies {
 public:
  // Help and type of a name are those that came first. False: there is such a line already, which stays, or the name is a
  // histogram's.
  bool Add(const MetricName& name, double value, const MetricLabels& labels = {});
  // The same of a histogram, whatever type `name` says. REQUIRES: counts are one more than bounds.
  bool AddHistogram(const MetricName& name, MetricHistogram histogram,
                    const MetricLabels& labels = {});
  // By name.
  std::string Text() const;

 private:
  struct Family {
    MetricName name;
    // One of both, as its type says.
    std::map<MetricLabels, double> values;
    std::map<MetricLabels, MetricHistogram> histograms;
  };
  std::map<std::string, Family> families_;
};

}  // namespace stepwell
