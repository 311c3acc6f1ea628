// A stand-in for NVIDIA's management library: what it answers is written in a scenario file, named by
// STEPWELL_NVML_SCENARIO (or called `scenario` beside the library itself: two copies of it are two
// machines in one process) and read again whenever it changes. Written from the library's documented
// interface, not from the agent's declarations of it, so that a wrong one of those shows.
//
//   gpus 2                            GPUs 0 and 1, UUIDs GPU-stub-0 and GPU-stub-1
//   gpu 0 number 7                    its UUID is GPU-stub-7
//   gpu 0 power_mw 250000             a value; see kDefaults in nvml_scenario.cc for names
//   gpu * pcie_tx_bytes 5e9+1e6/s     with a rate per second since the file was written
//   gpu 0 util_gpu 10,20,30           one after the other, second by second; the last stays
//   gpu 0 mig 2                       MIG is on, two slices: MIG-stub-0-0, MIG-stub-0-1
//   gpu 0 fail nvmlDeviceGetPowerUsage 3    the result of a call; * = all calls on the device
//   gpu 1 slow nvmlDeviceGetUtilizationRates 50    milliseconds
//   gpu 1 hang nvmlDeviceGetUtilizationRates       until the file changes
//   library fail nvmlInit_v2 9
//
// A GPU that was lost once (result 15) stays so until the library is shut down by all who initialised it.
// StepwellStubInits() is how often it was initialised.
//
// Built three times: STEPWELL_NVML_STUB_OLD leaves out what drivers of 2018 lack,
// STEPWELL_NVML_STUB_MUTE the first call of all, as a library that was cut short or is another's.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "tests/support/nvml_stub/nvml_scenario.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

using stepwell::testing::Current;
using stepwell::testing::Now;
using stepwell::testing::Scenario;
using stepwell::testing::Seen;
using stepwell::testing::Suffer;
using stepwell::testing::ValueOf;

struct Device {
  int gpu = 0;
  int slice = -1;
};
struct GpmSample {
  int gpu = -1;
  double taken_at = 0;
};

std::atomic<int> g_begun{0};
std::atomic<int> g_init_count{0};
constexpr int kLost = 15;
std::array<std::atomic<bool>, 64> g_lost{};
Device g_gpus[64];
#ifndef STEPWELL_NVML_STUB_OLD
Device g_slices[64][8];
#endif

int Ask(int gpu, const char* call) {
  std::atomic<bool>& lost = g_lost.at(static_cast<std::size_t>(gpu));
  if (lost) return kLost;
  const int result = Suffer(std::to_string(gpu), call);
  if (result == kLost) lost = true;
  return result;
}

int Enter(void* handle, const char* call, Device& device) {
  if (g_begun == 0) return 1;
  if (handle == nullptr) return 2;
  device = *static_cast<Device*>(handle);
  return Ask(device.gpu, call);
}

// A slice has memory and monitors of its own, nothing else.
template <typename Number>
int Give(void* handle, const char* call, const char* key, Number* out) {
  Device device;
  if (const int result = Enter(handle, call, device); result != 0) return result;
  if (device.slice >= 0) return 3;
  *out = static_cast<Number>(ValueOf(*Seen(), device.gpu, key));
  return 0;
}

}  // namespace

#ifndef STEPWELL_NVML_STUB_MUTE
EXPORTED int nvmlInit_v2() {
  if (const int result = Suffer("library", "nvmlInit_v2"); result != 0) return result;
  ++g_begun;
  ++g_init_count;
  return 0;
}
#endif

EXPORTED int StepwellStubInits() { return g_init_count; }

EXPORTED int nvmlShutdown() {
  if (g_begun == 0) return 1;
  if (--g_begun == 0) {
    for (std::atomic<bool>& lost : g_lost) lost = false;
  }
  return 0;
}

EXPORTED const char* nvmlErrorString(int result) {
  switch (result) {
    case 3:
      return "Not Supported";
    case 4:
      return "Insufficient Permissions";
    case 9:
      return "Driver Not Loaded";
    case 15:
      return "GPU is lost";
    default:
      return "Unknown Error";
  }
}

EXPORTED int nvmlSystemGetDriverVersion(char* version, unsigned size) {
  snprintf(version, size, "%s", "999.1 (stub)");
  return 0;
}

EXPORTED int nvmlDeviceGetCount_v2(unsigned* count) {
  if (g_begun == 0) return 1;
  if (const int result = Suffer("library", "nvmlDeviceGetCount_v2"); result != 0) return result;
  *count = static_cast<unsigned>(std::min(Current()->gpu_count, 64));
  return 0;
}

EXPORTED int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (g_begun == 0) return 1;
  if (index >= static_cast<unsigned>(Current()->gpu_count)) return 2;
  if (const int result = Ask(static_cast<int>(index), "nvmlDeviceGetHandleByIndex_v2")) {
    return result;
  }
  g_gpus[index].gpu = static_cast<int>(index);
  *device = &g_gpus[index];
  return 0;
}

EXPORTED int nvmlDeviceGetUUID(void* handle, char* uuid, unsigned size) {
  Device device;
  if (const int result = Enter(handle, "nvmlDeviceGetUUID", device); result != 0) return result;
  if (device.slice >= 0) {
    snprintf(uuid, size, "MIG-stub-%d-%d", device.gpu, device.slice);
  } else {
    const double number = ValueOf(*Seen(), device.gpu, "number");
    snprintf(uuid, size, "GPU-stub-%d", number < 0 ? device.gpu : static_cast<int>(number));
  }
  return 0;
}

EXPORTED int nvmlDeviceGetName(void*, char* name, unsigned size) {
  snprintf(name, size, "%s", "Stub GPU");
  return 0;
}

struct Utilization {
  unsigned gpu;
  unsigned memory;
};
EXPORTED int nvmlDeviceGetUtilizationRates(void* handle, Utilization* utilization) {
  const char* const call = "nvmlDeviceGetUtilizationRates";
  Device device;
  if (const int result = Enter(handle, call, device); result != 0) return result;
  const std::shared_ptr<const Scenario> scenario = Seen();
  // With MIG on, the whole has none either.
  if (device.slice >= 0 || ValueOf(*scenario, device.gpu, "mig") > 0) return 3;
  utilization->gpu = static_cast<unsigned>(ValueOf(*scenario, device.gpu, "util_gpu"));
  utilization->memory = static_cast<unsigned>(ValueOf(*scenario, device.gpu, "util_memory"));
  return 0;
}

struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
EXPORTED int nvmlDeviceGetMemoryInfo(void* handle, Memory* memory) {
  Device device;
  if (const int result = Enter(handle, "nvmlDeviceGetMemoryInfo", device)) return result;
  const std::shared_ptr<const Scenario> scenario = Seen();
  const double share = device.slice >= 0 ? ValueOf(*scenario, device.gpu, "mig") : 1;
  const auto of = [&](const char* key) {
    return static_cast<unsigned long long>(ValueOf(*scenario, device.gpu, key) / share);
  };
  memory->total = of("memory_total");
  memory->used = of("memory_used") + of("memory_reserved");
  memory->free = memory->total - memory->used;
  return 0;
}

EXPORTED int nvmlDeviceGetPowerUsage(void* handle, unsigned* milliwatts) {
  return Give(handle, "nvmlDeviceGetPowerUsage", "power_mw", milliwatts);
}

EXPORTED int nvmlDeviceGetEnforcedPowerLimit(void* handle, unsigned* milliwatts) {
  return Give(handle, "nvmlDeviceGetEnforcedPowerLimit", "power_limit_mw", milliwatts);
}

EXPORTED int nvmlDeviceGetTemperature(void* handle, unsigned sensor, unsigned* celsius) {
  if (sensor != 0) return 2;
  return Give(handle, "nvmlDeviceGetTemperature", "temperature", celsius);
}

EXPORTED int nvmlDeviceGetClockInfo(void* handle, unsigned type, unsigned* megahertz) {
  if (type != 1 && type != 2) return 2;
  return Give(handle, "nvmlDeviceGetClockInfo", type == 1 ? "clock_sm_mhz" : "clock_memory_mhz",
              megahertz);
}

EXPORTED int nvmlDeviceGetPcieThroughput(void* handle, unsigned counter, unsigned* kb_per_second) {
  if (counter > 1) return 2;
  return Give(handle, "nvmlDeviceGetPcieThroughput", counter == 0 ? "pcie_tx_kbs" : "pcie_rx_kbs",
              kb_per_second);
}

EXPORTED int nvmlDeviceGetCurrentClocksThrottleReasons(void* handle, unsigned long long* reasons) {
  return Give(handle, "nvmlDeviceGetCurrentClocksThrottleReasons", "throttle", reasons);
}

#ifndef STEPWELL_NVML_STUB_OLD

struct MemoryV2 {
  unsigned version;
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};
EXPORTED int nvmlDeviceGetMemoryInfo_v2(void* handle, MemoryV2* memory) {
  if (memory->version != 0x02000028) return 25;
  Memory plain{};
  if (const int result = nvmlDeviceGetMemoryInfo(handle, &plain); result != 0) return result;
  const Device& device = *static_cast<Device*>(handle);
  memory->total = plain.total;
  memory->reserved =
      static_cast<unsigned long long>(ValueOf(*Seen(), device.gpu, "memory_reserved"));
  memory->used = plain.used - memory->reserved;
  memory->free = plain.free;
  return 0;
}

EXPORTED int nvmlDeviceGetTotalEnergyConsumption(void* handle, unsigned long long* millijoules) {
  return Give(handle, "nvmlDeviceGetTotalEnergyConsumption", "energy_mj", millijoules);
}

struct TemperatureV1 {
  unsigned version;
  unsigned sensor;
  int celsius;
};
EXPORTED int nvmlDeviceGetTemperatureV(void* handle, TemperatureV1* temperature) {
  if (temperature->version != 0x0100000c) return 25;
  if (temperature->sensor != 0) return 2;
  return Give(handle, "nvmlDeviceGetTemperatureV", "temperature", &temperature->celsius);
}

EXPORTED int nvmlDeviceGetCurrentClocksEventReasons(void* handle, unsigned long long* reasons) {
  return Give(handle, "nvmlDeviceGetCurrentClocksEventReasons", "throttle", reasons);
}

struct FieldValue {
  unsigned field;
  unsigned scope;
  long long timestamp;
  long long latency;
  int type;
  int result;
  union {
    double d;
    unsigned ui;
    unsigned long long ull;
  } value;
};
EXPORTED int nvmlDeviceGetFieldValues(void* handle, int count, FieldValue* values) {
  Device device;
  if (const int result = Enter(handle, "nvmlDeviceGetFieldValues", device)) return result;
  const std::shared_ptr<const Scenario> scenario = Seen();
  // Stays when the process ends: a call that hangs looks into it then.
  static const auto& kKeys = *new const std::map<unsigned, const char*>{{82, "memory_temperature"},
                                                                        {138, "nvlink_tx_kib"},
                                                                        {139, "nvlink_rx_kib"},
                                                                        {197, "pcie_tx_bytes"},
                                                                        {198, "pcie_rx_bytes"}};
  for (int i = 0; i < count; ++i) {
    FieldValue& value = values[i];
    const auto key = kKeys.find(value.field);
    const std::string name = "field" + std::to_string(value.field);
    value.result = Suffer(std::to_string(device.gpu), name.c_str());
    if (key == kKeys.end() || device.slice >= 0) value.result = 3;
    // All links together are asked for by a scope of their own; without it: link 0.
    const bool is_link = value.field == 138 || value.field == 139;
    if (is_link && value.scope != 0xffffffffu) value.result = 3;
    if (value.result != 0) continue;
    const double number = ValueOf(*scenario, device.gpu, key->second);
    const bool is_pcie = value.field >= 197;
    const bool narrow =
        value.field == 82 || (is_pcie && ValueOf(*scenario, device.gpu, "pcie_counter_bits") == 32);
    value.type = narrow ? 1 : 3;
    value.value.ull = static_cast<unsigned long long>(number);
    if (narrow) value.value.ull &= 0xffffffffu;
  }
  return 0;
}

EXPORTED int nvmlDeviceGetMigMode(void* handle, unsigned* current, unsigned* pending) {
  Device device;
  if (const int result = Enter(handle, "nvmlDeviceGetMigMode", device); result != 0) return result;
  if (device.slice >= 0) return 3;
  *current = *pending = ValueOf(*Seen(), device.gpu, "mig") > 0 ? 1 : 0;
  return 0;
}

EXPORTED int nvmlDeviceGetMaxMigDeviceCount(void* handle, unsigned* count) {
  Device device;
  if (const int result = Enter(handle, "nvmlDeviceGetMaxMigDeviceCount", device)) return result;
  *count = 7;
  return 0;
}

EXPORTED int nvmlDeviceGetMigDeviceHandleByIndex(void* handle, unsigned index, void** slice) {
  Device device;
  if (const int result = Enter(handle, "nvmlDeviceGetMigDeviceHandleByIndex", device)) {
    return result;
  }
  if (index >= 7 || index >= ValueOf(*Seen(), device.gpu, "mig")) return 6;
  g_slices[device.gpu][index] = {device.gpu, static_cast<int>(index)};
  *slice = &g_slices[device.gpu][index];
  return 0;
}

EXPORTED int nvmlDeviceGetGpuInstanceId(void* handle, unsigned* id) {
  Device device;
  if (const int result = Enter(handle, "nvmlDeviceGetGpuInstanceId", device)) return result;
  *id = static_cast<unsigned>(device.slice) + 7;
  return 0;
}

struct GpmSupport {
  unsigned version;
  unsigned is_supported;
};
EXPORTED int nvmlGpmQueryDeviceSupport(void* handle, GpmSupport* support) {
  Device device;
  if (const int result = Enter(handle, "nvmlGpmQueryDeviceSupport", device)) return result;
  if (support->version != 1) return 25;
  support->is_supported = ValueOf(*Seen(), device.gpu, "gpm") > 0 ? 1 : 0;
  return 0;
}

EXPORTED int nvmlGpmSampleAlloc(void** sample) {
  *sample = new GpmSample;
  return 0;
}

EXPORTED int nvmlGpmSampleFree(void* sample) {
  delete static_cast<GpmSample*>(sample);
  return 0;
}

EXPORTED int nvmlGpmSampleGet(void* handle, void* sample) {
  Device device;
  if (const int result = Enter(handle, "nvmlGpmSampleGet", device); result != 0) return result;
  if (device.slice >= 0) return 2;
  *static_cast<GpmSample*>(sample) = {device.gpu, Now()};
  return 0;
}

EXPORTED int nvmlGpmMigSampleGet(void* handle, unsigned instance, void* sample) {
  Device device;
  if (const int result = Enter(handle, "nvmlGpmMigSampleGet", device); result != 0) return result;
  if (device.slice >= 0 || instance < 7) return 2;
  *static_cast<GpmSample*>(sample) = {device.gpu, Now()};
  return 0;
}

struct GpmMetric {
  unsigned id;
  int result;
  double value;
  struct {
    char* short_name;
    char* long_name;
    char* unit;
  } info;
};
struct GpmMetricsGet {
  unsigned version;
  unsigned count;
  GpmSample* sample1;
  GpmSample* sample2;
  GpmMetric metrics[477];
};
EXPORTED int nvmlGpmMetricsGet(GpmMetricsGet* get) {
  if (get->version != 1) return 25;
  if (get->sample1->gpu < 0 || get->sample2->taken_at <= get->sample1->taken_at) return 2;
  const std::shared_ptr<const Scenario> scenario = Seen();
  for (unsigned i = 0; i < get->count; ++i) {
    const std::string key = "gpm_" + std::to_string(get->metrics[i].id);
    get->metrics[i].result = Suffer(std::to_string(get->sample1->gpu), key.c_str());
    get->metrics[i].value = ValueOf(*scenario, get->sample1->gpu, key);
  }
  return 0;
}

#endif  // STEPWELL_NVML_STUB_OLD
