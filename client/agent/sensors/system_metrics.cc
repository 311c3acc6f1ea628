#include "client/agent/sensors/system_metrics.h"

#include <algorithm>
#include <array>
#include <utility>

namespace stepwell::agent {
namespace {

constexpr std::array kAll = {
    &metrics::kCpuUtilSimple,
    &metrics::kCpuUtilCore,
    &metrics::kCpuLoad1m,
    &metrics::kCpuLoad5m,
    &metrics::kCpuLoad15m,
    &metrics::kCpuPressureSome,
    &metrics::kCpuUtilContainer,
    &metrics::kCpuContainerLimit,
    &metrics::kCpuContainerThrottled,
    &metrics::kCpuUtilProcess,
    &metrics::kCpuProcessThreads,
    &metrics::kMemoryFree,
    &metrics::kMemoryUsed,
    &metrics::kMemoryTotal,
    &metrics::kMemoryCached,
    &metrics::kMemorySwapUsed,
    &metrics::kMemoryPressureSome,
    &metrics::kMemoryPressureFull,
    &metrics::kMemoryContainerUsed,
    &metrics::kMemoryContainerLimit,
    &metrics::kMemoryProcessResident,
    &metrics::kDiskIops,
    &metrics::kDiskThroughputRead,
    &metrics::kDiskThroughputWrite,
    &metrics::kDiskUtil,
    &metrics::kDiskPressureSome,
    &metrics::kDiskPressureFull,
    &metrics::kDiskProcessRead,
    &metrics::kDiskProcessWrite,
    &metrics::kNetThroughputSent,
    &metrics::kNetThroughputRecv,
    &metrics::kNetInterfaceSent,
    &metrics::kNetInterfaceRecv,
    &metrics::kNetInfinibandSent,
    &metrics::kNetInfinibandRecv,
    &metrics::kNetInfinibandPacketsSent,
    &metrics::kNetInfinibandPacketsRecv,
    &metrics::kNetInfinibandSendWaits,
    &metrics::kNetInfinibandSendDiscards,
    &metrics::kNetInfinibandRecvErrors,
    &metrics::kNetInfinibandSymbolErrors,
    &metrics::kNetInfinibandLinkDowned,
    &metrics::kGpuUtil,
    &metrics::kGpuMemoryUtil,
    &metrics::kGpuFreeMemory,
    &metrics::kGpuUsedMemory,
    &metrics::kGpuTotalMemory,
    &metrics::kGpuPower,
    &metrics::kGpuPowerLimit,
    &metrics::kGpuEnergy,
    &metrics::kGpuTemperature,
    &metrics::kGpuMemoryTemperature,
    &metrics::kGpuSmClock,
    &metrics::kGpuMemoryClock,
    &metrics::kGpuPcieSent,
    &metrics::kGpuPcieRecv,
    &metrics::kGpuNvlinkSent,
    &metrics::kGpuNvlinkRecv,
    &metrics::kGpuThrottle,
    &metrics::kGpuSmActivity,
    &metrics::kGpuSmOccupancy,
    &metrics::kGpuTensorActivity,
    &metrics::kGpuDramActivity,
    &metrics::kGpuFp64Activity,
    &metrics::kGpuFp32Activity,
    &metrics::kGpuFp16Activity,
};

}  // namespace

std::span<const SystemMetric* const> AllSystemMetrics() { return kAll; }

const SystemMetric* FindSystemMetric(const std::string& name) {
  const auto found = std::find_if(kAll.begin(), kAll.end(),
                                  [&](const SystemMetric* metric) { return name == metric->name; });
  return found == kAll.end() ? nullptr : *found;
}

SensedSeries SeriesOf(const SystemMetric& metric, std::map<std::string, std::string> labels) {
  return {metric.metric_group, metric.name,    std::move(labels),
          metric.unit,         metric.divisor, metric.kind};
}

}  // namespace stepwell::agent
