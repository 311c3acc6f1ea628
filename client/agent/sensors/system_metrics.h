// SystemMetrics: the one table of what sensors measure: metric group, name, unit, resolution. Names
// and units are part of the contract; docs/metrics.md says source, formula and meaning of each, and
// a test holds the two together.
#pragma once

#include <span>
#include <string>

#include "client/agent/sensors/sensed_series.h"

namespace stepwell::agent {

// Not in a sampler's choice unless it is asked for.
enum class Asked { kAlways, kOnRequest };

struct SystemMetric {
  const char* metric_group;
  const char* name;
  const char* unit;
  // Values are multiples of 1 / divisor: what lies below is noise, and columns of integers are a
  // fraction of the size.
  std::uint64_t divisor = 1;
  SensedKind kind = SensedKind::kGauge;
  Asked asked = Asked::kAlways;
};

namespace metrics {

inline constexpr SystemMetric kCpuUtilSimple = {"cpu", "cpu_util_simple", "percent", 100};
inline constexpr SystemMetric kCpuUtilCore = {"cpu", "cpu_util_core",    "percent",
                                              100,   SensedKind::kGauge, Asked::kOnRequest};
inline constexpr SystemMetric kCpuLoad1m = {"cpu", "cpu_load_1m", "1", 100};
inline constexpr SystemMetric kCpuLoad5m = {"cpu", "cpu_load_5m", "1", 100};
inline constexpr SystemMetric kCpuLoad15m = {"cpu", "cpu_load_15m", "1", 100};
inline constexpr SystemMetric kCpuPressureSome = {"cpu", "cpu_pressure_some", "percent", 100};
inline constexpr SystemMetric kCpuUtilContainer = {"cpu", "cpu_util_container", "percent", 100};
inline constexpr SystemMetric kCpuContainerLimit = {"cpu", "cpu_container_limit", "1", 1000};
inline constexpr SystemMetric kCpuContainerThrottled = {"cpu", "cpu_container_throttled", "percent",
                                                        100};
inline constexpr SystemMetric kCpuUtilProcess = {"cpu", "cpu_util_process", "percent", 100};
inline constexpr SystemMetric kCpuProcessThreads = {"cpu", "cpu_process_threads", "1"};

inline constexpr SystemMetric kMemoryFree = {"memory", "memory_free", "bytes"};
inline constexpr SystemMetric kMemoryUsed = {"memory", "memory_used", "bytes"};
inline constexpr SystemMetric kMemoryTotal = {"memory", "memory_total", "bytes"};
inline constexpr SystemMetric kMemoryCached = {"memory", "memory_cached", "bytes"};
inline constexpr SystemMetric kMemorySwapUsed = {"memory", "memory_swap_used", "bytes"};
inline constexpr SystemMetric kMemoryPressureSome = {"memory", "memory_pressure_some", "percent",
                                                     100};
inline constexpr SystemMetric kMemoryPressureFull = {"memory", "memory_pressure_full", "percent",
                                                     100};
inline constexpr SystemMetric kMemoryContainerUsed = {"memory", "memory_container_used", "bytes"};
inline constexpr SystemMetric kMemoryContainerLimit = {"memory", "memory_container_limit", "bytes"};
inline constexpr SystemMetric kMemoryProcessResident = {"memory", "memory_process_resident",
                                                        "bytes"};

inline constexpr SystemMetric kDiskIops = {"disk", "disk_iops", "1/s", 100};
inline constexpr SystemMetric kDiskThroughputRead = {"disk", "disk_throughput_read", "bytes/s"};
inline constexpr SystemMetric kDiskThroughputWrite = {"disk", "disk_throughput_write", "bytes/s"};
inline constexpr SystemMetric kDiskUtil = {"disk", "disk_util", "percent", 100};
inline constexpr SystemMetric kDiskPressureSome = {"disk", "disk_pressure_some", "percent", 100};
inline constexpr SystemMetric kDiskPressureFull = {"disk", "disk_pressure_full", "percent", 100};
inline constexpr SystemMetric kDiskProcessRead = {"disk", "disk_process_read", "bytes/s"};
inline constexpr SystemMetric kDiskProcessWrite = {"disk", "disk_process_write", "bytes/s"};

inline constexpr SystemMetric kNetThroughputSent = {"network", "net_throughput_sent", "bytes/s"};
inline constexpr SystemMetric kNetThroughputRecv = {"network", "net_throughput_recv", "bytes/s"};
inline constexpr SystemMetric kNetInterfaceSent = {"network", "net_interface_sent", "bytes/s"};
inline constexpr SystemMetric kNetInterfaceRecv = {"network", "net_interface_recv", "bytes/s"};
inline constexpr SystemMetric kNetInfinibandSent = {"network", "net_infiniband_sent", "bytes/s"};
inline constexpr SystemMetric kNetInfinibandRecv = {"network", "net_infiniband_recv", "bytes/s"};
inline constexpr SystemMetric kNetInfinibandPacketsSent = {"network", "net_infiniband_packets_sent",
                                                           "1/s"};
inline constexpr SystemMetric kNetInfinibandPacketsRecv = {"network", "net_infiniband_packets_recv",
                                                           "1/s"};
inline constexpr SystemMetric kNetInfinibandSendWaits = {"network", "net_infiniband_send_waits",
                                                         "1/s"};
inline constexpr SystemMetric kNetInfinibandSendDiscards = {
    "network", "net_infiniband_send_discards", "1/s", 1000};
inline constexpr SystemMetric kNetInfinibandRecvErrors = {"network", "net_infiniband_recv_errors",
                                                          "1/s", 1000};
inline constexpr SystemMetric kNetInfinibandSymbolErrors = {
    "network", "net_infiniband_symbol_errors", "1/s", 1000};
inline constexpr SystemMetric kNetInfinibandLinkDowned = {"network", "net_infiniband_link_downed",
                                                          "1/s", 1000};

inline constexpr SystemMetric kGpuUtil = {"gpu", "gpu_util", "percent"};
inline constexpr SystemMetric kGpuMemoryUtil = {"gpu", "gpu_memory_util", "percent"};
inline constexpr SystemMetric kGpuFreeMemory = {"gpu", "gpu_free_memory", "bytes"};
inline constexpr SystemMetric kGpuUsedMemory = {"gpu", "gpu_used_memory", "bytes"};
inline constexpr SystemMetric kGpuTotalMemory = {"gpu", "gpu_total_memory", "bytes"};
inline constexpr SystemMetric kGpuPower = {"gpu", "gpu_power", "watts", 1000};
inline constexpr SystemMetric kGpuPowerLimit = {"gpu", "gpu_power_limit", "watts", 1000};
inline constexpr SystemMetric kGpuEnergy = {"gpu", "gpu_energy", "joules", 1000,
                                            SensedKind::kCounter};
inline constexpr SystemMetric kGpuTemperature = {"gpu", "gpu_temperature", "celsius"};
inline constexpr SystemMetric kGpuMemoryTemperature = {"gpu", "gpu_memory_temperature", "celsius"};
inline constexpr SystemMetric kGpuSmClock = {"gpu", "gpu_sm_clock", "hertz"};
inline constexpr SystemMetric kGpuMemoryClock = {"gpu", "gpu_memory_clock", "hertz"};
inline constexpr SystemMetric kGpuPcieSent = {"gpu", "gpu_pcie_sent", "bytes/s"};
inline constexpr SystemMetric kGpuPcieRecv = {"gpu", "gpu_pcie_recv", "bytes/s"};
inline constexpr SystemMetric kGpuNvlinkSent = {"gpu", "gpu_nvlink_sent", "bytes/s"};
inline constexpr SystemMetric kGpuNvlinkRecv = {"gpu", "gpu_nvlink_recv", "bytes/s"};
inline constexpr SystemMetric kGpuThrottle = {"gpu", "gpu_throttle", "1"};
inline constexpr SystemMetric kGpuSmActivity = {"gpu", "gpu_sm_activity", "percent", 100};
inline constexpr SystemMetric kGpuSmOccupancy = {"gpu", "gpu_sm_occupancy", "percent", 100};
inline constexpr SystemMetric kGpuTensorActivity = {"gpu", "gpu_tensor_activity", "percent", 100};
inline constexpr SystemMetric kGpuDramActivity = {"gpu", "gpu_dram_activity", "percent", 100};
inline constexpr SystemMetric kGpuFp64Activity = {"gpu", "gpu_fp64_activity", "percent", 100};
inline constexpr SystemMetric kGpuFp32Activity = {"gpu", "gpu_fp32_activity", "percent", 100};
inline constexpr SystemMetric kGpuFp16Activity = {"gpu", "gpu_fp16_activity", "percent", 100};

}  // namespace metrics

std::span<const SystemMetric* const> AllSystemMetrics();
// Null where there is none of this name.
const SystemMetric* FindSystemMetric(const std::string& name);
SensedSeries SeriesOf(const SystemMetric& metric, std::map<std::string, std::string> labels = {});

}  // namespace stepwell::agent
