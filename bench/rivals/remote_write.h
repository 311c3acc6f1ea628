// RemoteWrite: the bytes of a Prometheus remote-write request (prometheus.WriteRequest: 1 timeseries = 1
// labels {1 name, 2 value}, 2 samples {1 double value, 2 int64 milliseconds}). Thread-compatible.
#pragma once

#include <cstdint>
#include <string>

#include "bench/load/tick_load.h"

namespace stepwell::bench {

class RemoteWrite {
 public:
  void BeginSeries(const LoadSeries& series, int writer, bool is_batch);
  // Of the series begun last.
  void AddSample(double value, std::int64_t time_ms);
  std::string Take();

 private:
  void EndSeries();

  std::string bytes_;
  std::string series_;  // not yet in bytes_
};

}  // namespace stepwell::bench
