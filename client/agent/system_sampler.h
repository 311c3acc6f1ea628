// SystemSampler: readings of this machine's counters become one tick of gauges. Rates run over the
// time that truly passed between two readings, so the first sample of a rate comes with the second
// reading. A sensor that fails is left out and named; it hides nothing else and comes back by
// itself. No thread, no clock of its own. Thread-compatible.
//
//   SystemSampler sampler(ProcReader("/"));
//   const SystemTick tick = sampler.Sample(now);
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/agent/proc_reader.h"
#include "client/agent/series_catalog.h"

namespace stepwell::agent {

struct SystemSample {
  SeriesSpec series;
  double value = 0;
};

struct SensorMiss {
  std::string metric_group;
  // How many samples the sensor would have given.
  int sample_count = 0;
  absl::Status why;
};

struct SystemTick {
  std::vector<SystemSample> samples;
  std::vector<SensorMiss> misses;
};

class SystemSampler {
 public:
  explicit SystemSampler(ProcReader reader) : reader_(std::move(reader)) {}

  // `now` is a monotonic reading, the same clock each time.
  SystemTick Sample(absl::Duration now);
  // Rates begin anew at the next two readings: after a pause they would average over it.
  void Forget();

 private:
  template <typename Counters>
  struct Earlier {
    Counters counters;
    absl::Duration read_at;
  };
  void SampleCpu(absl::Duration now, SystemTick& tick);
  void SampleMemory(SystemTick& tick);
  void SampleDisks(absl::Duration now, SystemTick& tick);
  void SampleMounts(SystemTick& tick);
  void SampleNetwork(absl::Duration now, SystemTick& tick);

  const ProcReader reader_;
  std::optional<Earlier<CpuTimes>> cpu_;
  std::optional<Earlier<DiskCounters>> disks_;
  std::optional<Earlier<NetworkCounters>> network_;
  int mount_count_ = 1;
};

}  // namespace stepwell::agent
