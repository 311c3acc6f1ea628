// ProcessSampler: what a recording process itself uses, as ticks of its own writer, so that the
// samples carry its rank. Once an interval, at most once a visit. Confined to the agent's loop.
//
//   ProcessSampler sampler(catalog, builder, clock);
//   sampler.Visit({.pid = status.pid, .batch = 12}, selection);
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "client/agent/chunk_builder.h"
#include "client/agent/sensors/absence_ledger.h"
#include "client/agent/sensors/process_sensor.h"
#include "client/agent/sensors/tick_schedule.h"
#include "client/agent/series_catalog.h"

namespace stepwell::agent {

// What sensors and the catalog call the same thing.
SeriesSpec SpecOf(const SensedSeries& series);
TickGroupKey TickGroupOf(Cadence cadence);
// As the wire tells it.
void TellAbsences(const std::vector<ToldAbsence>& absences, ChunkBuilder& builder);

class ProcessSampler {
 public:
  // All outlive the sampler. Below `root` lies proc.
  ProcessSampler(SeriesCatalog& catalog, ChunkBuilder& builder, const Clock& clock,
                 std::string root = "/");

  struct Process {
    // 0 = not known: in a PID namespace that the agent does not see.
    pid_t pid = 0;
    // That its last step ended; -1 = none.
    std::int32_t batch = -1;
  };
  void Visit(const Process& process, const SensorSelection& selection);
  // The process is gone: tells what is left to tell.
  void End() { TellAbsences(absences_.TakeAll(), builder_); }

 private:
  SeriesCatalog& catalog_;
  ChunkBuilder& builder_;
  const Clock& clock_;
  const KernelText kernel_;
  const std::shared_ptr<SeriesPool> pool_ = std::make_shared<SeriesPool>();
  pid_t pid_ = 0;
  std::unique_ptr<ProcessSensor> sensor_;
  std::optional<TickSchedule> schedule_;
  AbsenceLedger absences_;
};

}  // namespace stepwell::agent
