// A stand-in for AMD's amd_smi with two GPUs on two sockets, of fixed values; written from its
// documented interface. The second has neither a memory temperature nor an energy counter.
#include <cstdint>
#include <cstdio>
#include <cstring>

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
