// The table of metrics of AMD's libraries, as their documented interface lays it out: what ROCm 5 has
// of it, and what ROCm 6.3 has. Its layout is written out here, while what is tested goes by offsets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

struct EarlyTable {
  std::uint16_t driver_bytes;
  std::uint8_t format;
  std::uint8_t revision;
  std::uint16_t temperatures[6];
  std::uint16_t activities[3];
  std::uint16_t socket_watts;
  std::uint64_t energy;
  std::uint64_t driver_time;
  std::uint16_t average_clocks[7];
  std::uint16_t current_clocks[7];
  std::uint32_t throttle_of_this_chip;
  std::uint16_t fan;
  std::uint16_t pcie_width;
  std::uint16_t pcie_speed;
  std::uint32_t shader_activity;
  std::uint32_t memory_activity;
  std::uint16_t stack_temperatures[4];
};
struct Table {
  EarlyTable early;
  std::uint64_t firmware_time;
  std::uint16_t millivolts[3];
  std::uint64_t throttlers;
  std::uint16_t current_watts;
  std::uint16_t decoders[4];
  std::uint32_t clock_locks;
  std::uint16_t xgmi_width;
  std::uint16_t xgmi_speed;
  std::uint64_t pcie_acc;
  std::uint64_t pcie_now;
  std::uint64_t pcie_events[3];
  std::uint64_t xgmi_read_kib[8];
  std::uint64_t xgmi_write_kib[8];
  std::uint16_t many_clocks[20];
  std::uint16_t jpeg[32];
  std::uint32_t pcie_naks[2];
  std::uint64_t cycles;
  std::uint64_t hot_signal;
  std::uint64_t power;
  std::uint64_t socket_hot;
  std::uint64_t regulator_hot;
  std::uint64_t memory_hot;
  std::uint16_t partitions;
  std::uint64_t more[500];
};
// As of ROCm 5.2 and 7.2.
static_assert(sizeof(EarlyTable) == 96);
static_assert(offsetof(Table, throttlers) == 112 && offsetof(Table, cycles) == 424);

// All unknown but the header.
template <typename AnyTable>
void Begin(AnyTable* table, std::uint8_t revision) {
  std::memset(static_cast<void*>(table), 0xff, sizeof(*table));
  auto* early = reinterpret_cast<EarlyTable*>(table);
  early->driver_bytes = 264;
  early->format = 1;
  early->revision = revision;
}
