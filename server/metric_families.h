// MetricFamilies: metrics in Prometheus' text format (0.0.4), each name once with all of its lines. A core.
//
//   families.Add({"stepwell_writers", "Writers that are open.", MetricType::kGauge}, 5);
//   response.body = families.Text();
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace stepwell {

inline constexpr char kMetricsContentType[] = "text/plain; version=0.0.4; charset=utf-8";

enum class MetricType { kCounter, kGauge };

struct MetricName {
  std::string name;
  std::string help;
  MetricType type = MetricType::kGauge;
};

// In the order in which they are written.
using MetricLabels = std::vector<std::pair<std::string, std::string>>;

class MetricFamilies {
 public:
  // Help and type of a name are those that came first. False: there is such a line already, which stays.
  bool Add(const MetricName& name, double value, const MetricLabels& labels = {});
  // By name.
  std::string Text() const;

 private:
  struct Family {
    MetricName name;
    std::map<MetricLabels, double> values;
  };
  std::map<std::string, Family> families_;
};

}  // namespace stepwell
