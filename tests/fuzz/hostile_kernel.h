// HostileKernel: any bytes as the files by which a kernel, or whoever laid something over it (lxcfs), shows
// its counters, at two moments. Sensors give finite numbers that are not below zero, or say what is
// missing; no file takes others' samples with it by ending the agent. Header only.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "client/agent/sensors/cgroup_reader.h"
#include "client/agent/sensors/container_sensor.h"
#include "client/agent/sensors/cpu_sensor.h"
#include "client/agent/sensors/disk_sensor.h"
#include "client/agent/sensors/infiniband_sensor.h"
#include "client/agent/sensors/load_sensor.h"
#include "client/agent/sensors/memory_sensor.h"
#include "client/agent/sensors/mount_sensor.h"
#include "client/agent/sensors/mount_table.h"
#include "client/agent/sensors/network_sensor.h"
#include "client/agent/sensors/pressure_sensor.h"
#include "client/agent/sensors/process_sensor.h"
#include "tests/fuzz/hostile_bytes.h"

namespace stepwell::testing {

// What an input's parts may be; each part is a letter from 'a' on, its text, and a '~'. An 'A' is a
// second's passing.
inline constexpr std::array<const char*, 26> kKernelFiles = {
    "proc/stat",
    "proc/loadavg",
    "proc/meminfo",
    "proc/diskstats",
    "proc/net/dev",
    "proc/pressure/cpu",
    "proc/pressure/memory",
    "proc/pressure/io",
    "proc/self/cgroup",
    "proc/self/mountinfo",
    "proc/7/stat",
    "proc/7/statm",
    "proc/7/io",
    "sys/devices/system/cpu/online",
    "sys/fs/cgroup/a/cpu.stat",
    "sys/fs/cgroup/a/cpu.max",
    "sys/fs/cgroup/a/memory.current",
    "sys/fs/cgroup/a/memory.stat",
    "sys/fs/cgroup/a/memory.max",
    "sys/fs/cgroup/memory/a/memory.usage_in_bytes",
    "sys/fs/cgroup/memory/a/memory.stat",
    "sys/fs/cgroup/cpu/a/cpuacct.usage",
    "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us",
    "sys/fs/cgroup/cpu/a/cpu.cfs_period_us",
    "sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data",
    "sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data",
};

inline void CheckReading(const agent::Reading& reading) {
  for (const agent::SensedSample& sample : reading.samples()) {
    STEPWELL_CHECK(sample.series != nullptr);
    STEPWELL_CHECK(std::isfinite(sample.value) && sample.value >= 0);
    if (sample.series->name == "cpu_util_simple" || sample.series->name == "cpu_pressure_some") {
      STEPWELL_CHECK(sample.value <= 100);
    }
  }
  for (const agent::Absence& absence : reading.absences()) {
    STEPWELL_CHECK(!absence.reason.empty() && absence.sample_count >= 0);
  }
}

inline void CheckCgroups(const agent::KernelText& kernel) {
  agent::CgroupReader reader(kernel);
  for (int twice = 0; twice < 2; ++twice) {
    if (const auto cpu = reader.ReadCpu(); cpu.ok()) {
      STEPWELL_CHECK(std::isfinite(cpu->core_limit) && cpu->core_limit >= 0);
    }
    (void)reader.ReadMemory();
  }
}

inline void CheckKernelTexts(absl::string_view text) {
  if (const auto count = agent::CountProcessors(text)) STEPWELL_CHECK(*count > 0);
  const std::string name = agent::ContainerName(text, "host");
  STEPWELL_CHECK(name.size() <= 64);
  if (const auto mounts = agent::ParseMounts(text); mounts.ok()) {
    STEPWELL_CHECK(mounts->size() <= 64);
    STEPWELL_CHECK(std::is_sorted(
        mounts->begin(), mounts->end(),
        [](const agent::Mount& a, const agent::Mount& b) { return a.path < b.path; }));
  }
  (void)agent::NumberBehind(text, "MemTotal");
}

inline void ReadHostileKernel(std::string_view bytes) {
  static const HostileFolder folder;
  folder.Clear();
  const agent::KernelText kernel(folder.path().string());
  FakeClock clock;
  const agent::ReadingContext context{
      std::make_shared<agent::SeriesPool>(),
      std::make_shared<const agent::SensorSelection>(
          agent::SensorSelection::Parse({.with = "cpu_util_core"}).value()),
      &clock};
  std::vector<std::unique_ptr<agent::Sensor>> sensors;
  sensors.push_back(std::make_unique<agent::CpuSensor>(kernel));
  sensors.push_back(std::make_unique<agent::LoadSensor>(kernel));
  sensors.push_back(std::make_unique<agent::MemorySensor>(kernel));
  sensors.push_back(std::make_unique<agent::DiskSensor>(kernel));
  sensors.push_back(std::make_unique<agent::NetworkSensor>(kernel));
  for (const auto of : {agent::PressureSensor::Of::kCpu, agent::PressureSensor::Of::kMemory,
                        agent::PressureSensor::Of::kDisk}) {
    sensors.push_back(std::make_unique<agent::PressureSensor>(of, kernel));
  }
  sensors.push_back(std::make_unique<agent::ContainerCpuSensor>(kernel));
  sensors.push_back(std::make_unique<agent::ContainerMemorySensor>(kernel));
  sensors.push_back(std::make_unique<agent::LocalMountSensor>(kernel));
  sensors.push_back(std::make_unique<agent::ProcessSensor>(7, kernel));
  const std::string port = "sys/class/infiniband/mlx5_0/ports/1/counters/";
  sensors.push_back(std::make_unique<agent::InfinibandPortSensor>("mlx5_0/1", port, kernel));
  const auto read = [&] {
    agent::Reading reading(context);
    for (const auto& sensor : sensors) sensor->Read(reading);
    CheckReading(reading);
    CheckCgroups(kernel);
    clock.Advance(absl::Seconds(1));
  };
  HostileBytes input(bytes);
  int reads_left = 4;
  while (!input.at_end()) {
    const auto letter = input.Take<std::uint8_t>();
    if (letter == 'A') {
      if (--reads_left == 0) break;
      read();
      continue;
    }
    const std::string_view text = input.TakeUntil('~');
    CheckKernelTexts({text.data(), text.size()});
    folder.Write(kKernelFiles[(letter - 'a' + 26 * 8) % kKernelFiles.size()], text);
  }
  read();
  read();
}

}  // namespace stepwell::testing
