#include "client/agent/sensors/container_sensor.h"

namespace stepwell::agent {

void ContainerCpuSensor::Read(Reading& reading) {
  const absl::StatusOr<CgroupCpu> cpu = reader_.ReadCpu();
  if (absl::IsNotFound(cpu.status())) return;
  if (!cpu.ok()) return reading.Miss("cpu", face().name, 2, cpu.status());
  reading.Add(metrics::kCpuContainerLimit, cpu->core_limit);
  const absl::Duration now = reading.Now();
  if (const auto us_per_second = usage_us_.Next(cpu->usage_us, now); us_per_second) {
    reading.Add(metrics::kCpuUtilContainer, 100 * *us_per_second / 1e6 / cpu->core_limit);
  }
  const auto periods = periods_.Next(cpu->period_count, now);
  const auto throttled = throttled_.Next(cpu->throttled_count, now);
  // Without a limit no period passes, and nothing is throttled or not.
  if (periods && throttled && *periods > 0) {
    reading.Add(metrics::kCpuContainerThrottled, 100 * *throttled / *periods);
  }
}

void ContainerCpuSensor::Forget() {
  usage_us_.Forget();
  periods_.Forget();
  throttled_.Forget();
}

void ContainerMemorySensor::Read(Reading& reading) {
  const absl::StatusOr<CgroupMemory> memory = reader_.ReadMemory();
  if (absl::IsNotFound(memory.status())) return;
  if (!memory.ok()) return reading.Miss("memory", face().name, 1, memory.status());
  reading.Add(metrics::kMemoryContainerUsed, static_cast<double>(memory->used_bytes));
  if (memory->limit_bytes) {
    reading.Add(metrics::kMemoryContainerLimit, static_cast<double>(*memory->limit_bytes));
  }
}

}  // namespace stepwell::agent
