// SensedSeries: what a sensor measures: metric group, name, labels, unit. SeriesPool keeps each once,
// so that a sample is a pointer and a number, and whoever stores samples can tell series apart by
// address. It stands below all sensors. SeriesPool is thread-safe.
//
//   const SensedSeries* util = pool.Keep({"gpu", "gpu_util", {{"device", uuid}}, "percent"});
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace stepwell::agent {

enum class SensedKind { kGauge, kCounter };

struct SensedSeries {
  std::string metric_group;
  std::string name;
  std::map<std::string, std::string> labels = {};
  std::string unit = "1";
  // Values are kept as integer / divisor: what lies below is noise of the source.
  std::uint64_t divisor = 1;
  SensedKind kind = SensedKind::kGauge;
};

class SeriesPool {
 public:
  // Of one machine; a sampler's writer has no room for more either. What comes beyond is null.
  static constexpr std::size_t kSeriesCountMax = 8192;

  SeriesPool() = default;
  SeriesPool(const SeriesPool&) = delete;
  SeriesPool& operator=(const SeriesPool&) = delete;

  // The same address for the same group, name and labels, as long as the pool lives.
  const SensedSeries* Keep(SensedSeries series) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Mutex mu_;
  // By group, name and labels as one text; nodes never move.
  std::map<std::string, SensedSeries> series_by_key_ ABSL_GUARDED_BY(mu_);
};

}  // namespace stepwell::agent
