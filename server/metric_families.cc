#include "server/metric_families.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

namespace stepwell {
namespace {

prometheus::ClientMetric Line(MetricType type, const MetricLabels& labels, double value) {
  prometheus::ClientMetric line;
  for (const auto& [name, text] : labels) line.label.push_back({name, text});
  switch (type) {
    case MetricType::kCounter:
      line.counter.value = value;
      break;
    case MetricType::kGauge:
      line.gauge.value = value;
      break;
  }
  return line;
}

}  // namespace

bool MetricFamilies::Add(const MetricName& name, double value, const MetricLabels& labels) {
  Family& family = families_.try_emplace(name.name, Family{name, {}}).first->second;
  return family.values.emplace(labels, value).second;
}

std::string MetricFamilies::Text() const {
  std::vector<prometheus::MetricFamily> written;
  for (const auto& [name, family] : families_) {
    prometheus::MetricFamily& one = written.emplace_back();
    one.name = name;
    one.help = family.name.help;
    one.type = family.name.type == MetricType::kCounter ? prometheus::MetricType::Counter
                                                        : prometheus::MetricType::Gauge;
    for (const auto& [labels, value] : family.values) {
      one.metric.push_back(Line(family.name.type, labels, value));
    }
  }
  return prometheus::TextSerializer().Serialize(written);
}

}  // namespace stepwell
