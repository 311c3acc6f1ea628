#include "server/metric_families.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <limits>
#include <utility>

#include "base/check.h"

namespace stepwell {
namespace {

prometheus::ClientMetric Line(const MetricLabels& labels) {
  prometheus::ClientMetric line;
  for (const auto& [name, text] : labels) line.label.push_back({name, text});
  return line;
}

prometheus::ClientMetric Line(MetricType type, const MetricLabels& labels, double value) {
  prometheus::ClientMetric line = Line(labels);
  switch (type) {
    case MetricType::kCounter:
      line.counter.value = value;
      break;
    case MetricType::kGauge:
      line.gauge.value = value;
      break;
    case MetricType::kHistogram:
      STEPWELL_CHECK(false);  // has no one value
      break;
  }
  return line;
}

prometheus::ClientMetric Line(const MetricLabels& labels, const MetricHistogram& histogram) {
  prometheus::ClientMetric line = Line(labels);
  std::uint64_t below = 0;
  for (std::size_t at = 0; at < histogram.counts.size(); ++at) {
    below += histogram.counts[at];
    line.histogram.bucket.push_back({below, at < histogram.bounds.size()
                                                ? histogram.bounds[at]
                                                : std::numeric_limits<double>::infinity()});
  }
  line.histogram.sample_count = below;
  line.histogram.sample_sum = histogram.sum;
  return line;
}

prometheus::MetricType TypeOf(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return prometheus::MetricType::Counter;
    case MetricType::kGauge:
      return prometheus::MetricType::Gauge;
    case MetricType::kHistogram:
      return prometheus::MetricType::Histogram;
  }
  return prometheus::MetricType::Untyped;
}

}  // namespace

bool MetricFamilies::Add(const MetricName& name, double value, const MetricLabels& labels) {
  Family& family = families_.try_emplace(name.name, Family{name, {}, {}}).first->second;
  if (family.name.type == MetricType::kHistogram) return false;
  return family.values.emplace(labels, value).second;
}

bool MetricFamilies::AddHistogram(const MetricName& name, MetricHistogram histogram,
                                  const MetricLabels& labels) {
  STEPWELL_CHECK(histogram.counts.size() == histogram.bounds.size() + 1);
  const MetricName typed{name.name, name.help, MetricType::kHistogram};
  Family& family = families_.try_emplace(name.name, Family{typed, {}, {}}).first->second;
  if (family.name.type != MetricType::kHistogram) return false;
  return family.histograms.emplace(labels, std::move(histogram)).second;
}

std::string MetricFamilies::Text() const {
  std::vector<prometheus::MetricFamily> written;
  for (const auto& [name, family] : families_) {
    prometheus::MetricFamily& one = written.emplace_back();
    one.name = name;
    one.help = family.name.help;
    one.type = TypeOf(family.name.type);
    for (const auto& [labels, value] : family.values) {
      one.metric.push_back(Line(family.name.type, labels, value));
    }
    for (const auto& [labels, histogram] : family.histograms) {
      one.metric.push_back(Line(labels, histogram));
    }
  }
  return prometheus::TextSerializer().Serialize(written);
}

}  // namespace stepwell
