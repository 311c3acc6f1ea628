// A stand-in for AMD's rocm_smi with one GPU of fixed values; written from its documented interface.
// Built twice: STEPWELL_ROCM_STUB_LATE has the later layout of frequencies, and a table of metrics.
#include <cstdint>

#include "tests/support/amd_stub/metrics_table.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int rsmi_init(std::uint64_t) { return 0; }

EXPORTED int rsmi_num_monitor_devices(std::uint32_t* count) {
  *count = 1;
  return 0;
}

EXPORTED int rsmi_dev_unique_id_get(std::uint32_t, std::uint64_t* id) {
  *id = 0x1234abcd;
  return 0;
}

EXPORTED int rsmi_dev_busy_percent_get(std::uint32_t, std::uint32_t* percent) {
  *percent = 42;
  return 0;
}

EXPORTED int rsmi_dev_memory_busy_percent_get(std::uint32_t, std::uint32_t*) { return 2; }

EXPORTED int rsmi_dev_memory_total_get(std::uint32_t, int type, std::uint64_t* bytes) {
  *bytes = 3000;
  return type == 0 ? 0 : 1;
}

EXPORTED int rsmi_dev_memory_usage_get(std::uint32_t, int type, std::uint64_t* bytes) {
  *bytes = 1000;
  return type == 0 ? 0 : 1;
}

EXPORTED int rsmi_dev_energy_count_get(std::uint32_t, std::uint64_t* count, float* resolution,
                                       std::uint64_t* time_ns) {
  static std::uint64_t calls = 0;
  *count = ++calls * 2000000;
  *resolution = 15.25f;
  *time_ns = 1;
  return 0;
}

EXPORTED int rsmi_dev_temp_metric_get(std::uint32_t, std::uint32_t sensor, int metric,
                                      std::int64_t* millidegrees) {
  if (metric != 0) return 1;
  if (sensor == 2) return 4;
  *millidegrees = 61000;
  return 0;
}

struct Frequencies {
#ifdef STEPWELL_ROCM_STUB_LATE
  bool has_deep_sleep;
#endif
  std::uint32_t count;
  std::uint32_t current;
  std::uint64_t hertz[33];
};
EXPORTED int rsmi_dev_gpu_clk_freq_get(std::uint32_t, int type, Frequencies* frequencies) {
#ifdef STEPWELL_ROCM_STUB_LATE
  frequencies->has_deep_sleep = type == 0;
#endif
  frequencies->count = 3;
  frequencies->current = type == 0 ? 2 : 0;
  frequencies->hertz[0] = type == 0 ? 500000000 : 900000000;
  frequencies->hertz[1] = 1000000000;
  frequencies->hertz[2] = 1700000000;
  return 0;
}

EXPORTED int rsmi_dev_power_cap_get(std::uint32_t, std::uint32_t sensor,
                                    std::uint64_t* microwatts) {
  *microwatts = 300000000;
  return sensor == 0 ? 0 : 1;
}

#ifdef STEPWELL_ROCM_STUB_LATE
// 50 cycles more at each call, in half of which the memory was too hot.
EXPORTED int rsmi_dev_gpu_metrics_info_get(std::uint32_t, Table* table) {
  static std::uint64_t calls = 0;
  ++calls;
  Begin(table, 7);
  table->cycles = calls * 50;
  table->hot_signal = 0;
  table->power = 0;
  table->socket_hot = 0;
  table->regulator_hot = 0;
  table->memory_hot = calls * 25;
  return 0;
}
#endif
