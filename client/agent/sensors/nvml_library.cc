#include "client/agent/sensors/nvml_library.h"

#include <dlfcn.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace stepwell::agent {
namespace {

// The first name that the library has. Names end in the version of their arguments.
template <typename Function>
void Bind(void* handle, Function& function, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    void* const symbol = dlsym(handle, name);
    if (symbol == nullptr) continue;
    function = reinterpret_cast<Function>(symbol);
    return;
  }
}

void BindDevices(void* handle, NvmlLibrary& nvml) {
  Bind(handle, nvml.init, {"nvmlInit_v2"});
  Bind(handle, nvml.shutdown, {"nvmlShutdown"});
  Bind(handle, nvml.error_string, {"nvmlErrorString"});
  Bind(handle, nvml.driver_version, {"nvmlSystemGetDriverVersion"});
  Bind(handle, nvml.device_count, {"nvmlDeviceGetCount_v2"});
  Bind(handle, nvml.device_by_index, {"nvmlDeviceGetHandleByIndex_v2"});
  Bind(handle, nvml.uuid, {"nvmlDeviceGetUUID"});
  Bind(handle, nvml.name, {"nvmlDeviceGetName"});
  Bind(handle, nvml.mig_mode, {"nvmlDeviceGetMigMode"});
  Bind(handle, nvml.mig_count_max, {"nvmlDeviceGetMaxMigDeviceCount"});
  Bind(handle, nvml.mig_by_index, {"nvmlDeviceGetMigDeviceHandleByIndex"});
  Bind(handle, nvml.gpu_instance, {"nvmlDeviceGetGpuInstanceId"});
}

void BindGauges(void* handle, NvmlLibrary& nvml) {
  Bind(handle, nvml.utilization, {"nvmlDeviceGetUtilizationRates"});
  Bind(handle, nvml.memory, {"nvmlDeviceGetMemoryInfo"});
  Bind(handle, nvml.memory_v2, {"nvmlDeviceGetMemoryInfo_v2"});
  Bind(handle, nvml.power_usage, {"nvmlDeviceGetPowerUsage"});
  Bind(handle, nvml.power_limit, {"nvmlDeviceGetEnforcedPowerLimit"});
  Bind(handle, nvml.energy, {"nvmlDeviceGetTotalEnergyConsumption"});
  Bind(handle, nvml.temperature, {"nvmlDeviceGetTemperature"});
  Bind(handle, nvml.temperature_v, {"nvmlDeviceGetTemperatureV"});
  Bind(handle, nvml.clock, {"nvmlDeviceGetClockInfo"});
  Bind(handle, nvml.clock_event_reasons,
       {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"});
  Bind(handle, nvml.field_values, {"nvmlDeviceGetFieldValues"});
  Bind(handle, nvml.pcie_throughput, {"nvmlDeviceGetPcieThroughput"});
  Bind(handle, nvml.gpm_support, {"nvmlGpmQueryDeviceSupport"});
  Bind(handle, nvml.gpm_alloc, {"nvmlGpmSampleAlloc"});
  Bind(handle, nvml.gpm_free, {"nvmlGpmSampleFree"});
  Bind(handle, nvml.gpm_sample, {"nvmlGpmSampleGet"});
  Bind(handle, nvml.gpm_mig_sample, {"nvmlGpmMigSampleGet"});
  Bind(handle, nvml.gpm_metrics, {"nvmlGpmMetricsGet"});
}

}  // namespace

std::string NvmlLibrary::PathToLoad() {
  const char* path = std::getenv("STEPWELL_NVML_PATH");
  return path != nullptr && *path != '\0' ? path : "libnvidia-ml.so.1";
}

absl::StatusOr<std::shared_ptr<const NvmlLibrary>> NvmlLibrary::Load(const std::string& path) {
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    return absl::NotFoundError(why == nullptr ? path : why);
  }
  auto nvml = std::make_shared<NvmlLibrary>();
  BindDevices(handle, *nvml);
  BindGauges(handle, *nvml);
  if (nvml->init == nullptr || nvml->shutdown == nullptr || nvml->device_count == nullptr ||
      nvml->device_by_index == nullptr || nvml->uuid == nullptr) {
    return absl::NotFoundError(absl::StrCat(path, " is no NVML of this decade"));
  }
  return std::shared_ptr<const NvmlLibrary>(std::move(nvml));
}

absl::Status NvmlLibrary::StatusOf(int result, const char* call) const {
  if (result == nvml::kSuccess) return absl::OkStatus();
  const char* text = error_string == nullptr ? nullptr : error_string(result);
  const std::string message =
      absl::StrCat(call, ": ", text == nullptr ? absl::StrCat("error ", result) : text);
  switch (result) {
    case nvml::kNotSupported:
    case nvml::kInvalidArgument:
    case nvml::kFunctionNotFound:
    case nvml::kArgumentVersionMismatch:
    case nvml::kDeprecated:
      return absl::UnimplementedError(message);
    case nvml::kNoPermission:
      return absl::PermissionDeniedError(message);
    case nvml::kGpuIsLost:
    case nvml::kResetRequired:
    case nvml::kUninitialized:
    case nvml::kGpuNotFound:
    case nvml::kVersionMismatch:
      return absl::DataLossError(message);
    default:
      return absl::UnavailableError(message);
  }
}

}  // namespace stepwell::agent
