// SampledNames: the system metrics' groups and names, as the agent's sensors have them, so that a word
// that is none of them is told where it was written. An agent of another release may know more: what
// is unknown here is passed on all the same. A test of the agent's holds the two together.
#pragma once

#include <string_view>

namespace stepwell::recorder {

inline constexpr std::string_view kSampledGroups[] = {"cpu", "disk", "gpu", "memory", "network"};

inline constexpr std::string_view kSampledMetrics[] = {
    "cpu_util_simple",
    "cpu_util_core",
    "cpu_load_1m",
    "cpu_load_5m",
    "cpu_load_15m",
    "cpu_pressure_some",
    "cpu_util_container",
    "cpu_container_limit",
    "cpu_container_throttled",
    "cpu_util_process",
    "cpu_process_threads",
    "memory_free",
    "memory_used",
    "memory_total",
    "memory_cached",
    "memory_swap_used",
    "memory_pressure_some",
    "memory_pressure_full",
    "memory_container_used",
    "memory_container_limit",
    "memory_process_resident",
    "disk_iops",
    "disk_throughput_read",
    "disk_throughput_write",
    "disk_util",
    "disk_pressure_some",
    "disk_pressure_full",
    "disk_process_read",
    "disk_process_write",
    "net_throughput_sent",
    "net_throughput_recv",
    "net_interface_sent",
    "net_interface_recv",
    "net_infiniband_sent",
    "net_infiniband_recv",
    "gpu_util",
    "gpu_memory_util",
    "gpu_free_memory",
    "gpu_used_memory",
    "gpu_total_memory",
    "gpu_power",
    "gpu_power_limit",
    "gpu_energy",
    "gpu_temperature",
    "gpu_memory_temperature",
    "gpu_sm_clock",
    "gpu_memory_clock",
    "gpu_pcie_sent",
    "gpu_pcie_recv",
    "gpu_nvlink_sent",
    "gpu_nvlink_recv",
    "gpu_throttle",
    "gpu_sm_activity",
    "gpu_sm_occupancy",
    "gpu_tensor_activity",
    "gpu_dram_activity",
    "gpu_fp64_activity",
    "gpu_fp32_activity",
    "gpu_fp16_activity",
};

}  // namespace stepwell::recorder
