// ProcessSensor: one process's own processor time, memory, threads and file io, from /proc/PID. Not
// of its children: they are processes too. Confined to one thread.
#pragma once

#include <sys/types.h>

#include <string>

#include "client/agent/sensors/kernel_text.h"
#include "client/agent/sensors/rate.h"
#include "client/agent/sensors/sensor.h"

namespace stepwell::agent {

class ProcessSensor final : public Sensor {
 public:
  ProcessSensor(pid_t pid, KernelText kernel);
  void Read(Reading& reading) override;
  void Forget() override;

 private:
  absl::Status ReadStat(Reading& reading);
  absl::Status ReadResident(Reading& reading) const;
  absl::Status ReadIo(Reading& reading);

  const KernelText kernel_;
  const std::string folder_;
  // A number is given again: another start time is another process.
  std::uint64_t started_at_ = 0;
  Rate processor_ticks_;
  Rate read_;
  Rate written_;
};

}  // namespace stepwell::agent
