// A stand-in for AMD's amd_smi with two GPUs on two sockets, of fixed values; written from its
// documented interface. The second has neither a memory temperature nor an energy counter nor a power
// limit, and an older driver's table. Built four times: STEPWELL_AMD_STUB_EARLY is of ROCm 6.0, where
// limits are in watts and the table is short, STEPWELL_AMD_STUB_BARE lacks limit and table,
// STEPWELL_AMD_STUB_FAILING fails to tell them.
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "tests/support/amd_stub/metrics_table.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

int g_processors[2] = {0, 1};
bool g_begun = false;

int IndexOf(void* processor) { return *static_cast<int*>(processor); }

}  // namespace

EXPORTED int amdsmi_init(std::uint64_t flags) {
  g_begun = flags == 2;
  return g_begun ? 0 : 1;
}

EXPORTED int amdsmi_get_socket_handles(std::uint32_t* count, void** sockets) {
  if (!g_begun) return 32;
  if (sockets != nullptr) {
    for (std::uint32_t i = 0; i < 2 && i < *count; ++i) sockets[i] = &g_processors[i];
  }
  *count = 2;
  return 0;
}

EXPORTED int amdsmi_get_processor_handles(void* socket, std::uint32_t* count, void** processors) {
  if (processors != nullptr && *count > 0) processors[0] = socket;
  *count = 1;
  return 0;
}

EXPORTED int amdsmi_get_gpu_device_uuid(void* processor, unsigned* size, char* uuid) {
  snprintf(uuid, *size, "74a1ff74-0000-1000-80a7-00000000000%d", IndexOf(processor));
  return 0;
}

struct EngineUsage {
  std::uint32_t gfx;
  std::uint32_t umc;
  std::uint32_t mm;
  std::uint32_t reserved[13];
};
EXPORTED int amdsmi_get_gpu_activity(void* processor, EngineUsage* usage) {
  std::memset(usage, 0xff, sizeof(*usage));
  usage->gfx = 60 + static_cast<std::uint32_t>(IndexOf(processor));
  usage->umc = 30;
  return 0;
}

EXPORTED int amdsmi_get_gpu_memory_total(void*, int type, std::uint64_t* bytes) {
  if (type != 0) return 1;
  *bytes = 200000;
  return 0;
}

EXPORTED int amdsmi_get_gpu_memory_usage(void*, int type, std::uint64_t* bytes) {
  if (type != 0) return 1;
  *bytes = 50000;
  return 0;
}

// A million counts of 15.25 microjoules more at each call.
EXPORTED int amdsmi_get_energy_count(void* processor, std::uint64_t* count, float* resolution,
                                     std::uint64_t* time_ns) {
  static std::uint64_t calls = 0;
  if (IndexOf(processor) == 1) return 2;
  *count = ++calls * 1000000;
  *resolution = 15.25f;
  *time_ns = 1;
  return 0;
}

EXPORTED int amdsmi_get_temp_metric(void* processor, int sensor, int metric,
                                    std::int64_t* celsius) {
  if (metric != 0) return 1;
  if (sensor == 2 && IndexOf(processor) == 1) return 2;
  *celsius = sensor == 0 ? 55 : 66;
  return 0;
}

struct ClockInfo {
  std::uint32_t clock;
  std::uint32_t min;
  std::uint32_t max;
  std::uint8_t locked;
  std::uint8_t deep_sleep;
  std::uint32_t reserved[4];
};
EXPORTED int amdsmi_get_clock_info(void*, int type, ClockInfo* info) {
  *info = {};
  info->clock = type == 0 ? 2100 : 1300;
  info->max = 9999;
  return type == 0 || type == 4 ? 0 : 1;
}

#ifndef STEPWELL_AMD_STUB_BARE
struct PowerCap {
  std::uint64_t cap;
  std::uint64_t standard;
  std::uint64_t megahertz;
  std::uint64_t min;
  std::uint64_t max;
  std::uint64_t reserved[3];
};
EXPORTED int amdsmi_get_power_cap_info(void* processor, std::uint32_t sensor, PowerCap* info) {
  if (sensor != 0) return 1;
#ifdef STEPWELL_AMD_STUB_FAILING
  return IndexOf(processor) == 1 ? 10 : 7;
#endif
  if (IndexOf(processor) == 1) return 2;
  *info = {550000000, 750000000, 0, 0, 750000000, {}};
#ifdef STEPWELL_AMD_STUB_EARLY
  *info = {550, 750, 0, 0, 750, {}};
#endif
  return 0;
}

#ifdef STEPWELL_AMD_STUB_EARLY
EXPORTED int amdsmi_get_gpu_metrics_info(void* processor, EarlyTable* table) {
  Begin(table, IndexOf(processor) == 1 ? 3 : 6);
  table->throttle_of_this_chip = 1;
  return 0;
}
#else
// 100 cycles more at each call, 40 of them throttled by power; 3 MiB received and 1.5 MiB sent more,
// over two links.
EXPORTED int amdsmi_get_gpu_metrics_info(void* processor, Table* table) {
  static std::uint64_t calls = 0;
#ifdef STEPWELL_AMD_STUB_FAILING
  if (IndexOf(processor) == 0) return 7;
  Begin(table, 3);
  table->early.format = 2;
  return 0;
#endif
  if (IndexOf(processor) == 1) {
    Begin(table, 3);
    // A limit of current, the hot spot's temperature, and something of neither kind.
    table->throttlers = std::uint64_t{1} << 16 | std::uint64_t{1} << 36 | std::uint64_t{1} << 56;
    return 0;
  }
  ++calls;
  Begin(table, 6);
  table->cycles = 1000000 + calls * 100;
  table->hot_signal = 11;
  table->power = 500 + calls * 40;
  table->socket_hot = 12;
  table->regulator_hot = 13;
  table->memory_hot = 14;
  table->xgmi_read_kib[0] = 7000000 + calls * 2048;
  table->xgmi_write_kib[0] = 5000000 + calls * 1024;
  table->xgmi_read_kib[1] = calls * 1024;
  table->xgmi_write_kib[1] = calls * 512;
  return 0;
}
#endif
#endif
