// HostileKernel: any bytes as the files by which a kernel, or whoever laid something over it (lxcfs), shows
// its counters, at two moments. Sensors give finite numbers that are not below zero, or say what is
// missing; no file takes others' samples with it by ending the agent. Likewise any bytes as the table of metrics that
// a driver of AMD's fills in. Header only.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "client/agent/sensors/amd_table.h"
#include "client/agent/sensors/amd_throttle.h"
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
// second's passing, a 'B' a table of AMD's: how many bytes the driver fills in as 2 little-endian
// bytes, and those.
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

inline std::optional<std::uint64_t> SlowWord(std::string_view bytes, std::size_t at) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < sizeof(word); ++i) {
    // Behind what the driver fills in stand ones.
    const std::uint64_t byte =
        at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0xff;
    word |= byte << (8 * i);
  }
  return word == ~std::uint64_t{0} ? std::nullopt : std::optional(word);
}

// Where a table has what, as the driver's headers say it.
inline void CheckAmdTable(std::string_view bytes, const agent::AmdTable& table) {
  const bool has_links = table.revision >= 4;
  for (std::size_t i = 0; i < agent::kXgmiLinkCount; ++i) {
    STEPWELL_CHECK(table.received_kib[i] ==
                   (has_links ? SlowWord(bytes, 184 + 8 * i) : std::nullopt));
    STEPWELL_CHECK(table.sent_kib[i] == (has_links ? SlowWord(bytes, 248 + 8 * i) : std::nullopt));
  }
  STEPWELL_CHECK(table.throttlers == (table.revision == 3 ? SlowWord(bytes, 112) : std::nullopt));
  if (!table.cycles) return;
  STEPWELL_CHECK(table.revision >= 6 && table.cycles->all != 0);
  STEPWELL_CHECK(table.cycles->all == SlowWord(bytes, 424));
  STEPWELL_CHECK(table.cycles->memory_hot == SlowWord(bytes, 464));
}

inline void ReadHostileAmdTable(std::string_view bytes, agent::AmdThrottle& throttle) {
  const auto table = agent::ReadAmdTable([&](std::byte* room) {
    std::memcpy(room, bytes.data(), std::min(bytes.size(), agent::kAmdTableBytesMax));
    return absl::OkStatus();
  });
  const bool is_of_gpu = bytes.size() > 2 && bytes[2] == 1;
  STEPWELL_CHECK(table.ok() == is_of_gpu);
  if (!table.ok()) {
    STEPWELL_CHECK(absl::IsUnimplemented(table.status()));
    return;
  }
  CheckAmdTable(bytes, *table);
  const auto reasons = throttle.Next(*table);
  if (!reasons.ok()) {
    STEPWELL_CHECK(absl::IsUnimplemented(reasons.status()) && !reasons.status().message().empty());
    return;
  }
  STEPWELL_CHECK(reasons->size() <= 5);
  // Of the same totals once more nothing can be told; of this moment the same.
  const auto again = throttle.Next(*table);
  STEPWELL_CHECK(again.ok() &&
                 (table->throttlers ? again->size() == reasons->size() : again->empty()));
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
  agent::AmdThrottle throttle;
  while (!input.at_end()) {
    const auto letter = input.Take<std::uint8_t>();
    if (letter == 'A') {
      if (--reads_left == 0) break;
      read();
      continue;
    }
    if (letter == 'B') {
      ReadHostileAmdTable(input.TakeBytes(input.Take<std::uint16_t>()), throttle);
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
