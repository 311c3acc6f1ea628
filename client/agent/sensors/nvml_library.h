// NvmlLibrary: NVIDIA's management library, loaded at run time. Each function is optional: drivers
// of different ages have different ones. What calls it may hang in it. Thread-safe, as the library
// is.
//
//   STEPWELL_ASSIGN_OR_RETURN(auto library, NvmlLibrary::Load(NvmlLibrary::PathToLoad()));
//   if (library->power_usage != nullptr) library->power_usage(device, &milliwatts);
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/agent/sensors/nvml_api.h"

namespace stepwell::agent {

class NvmlLibrary {
 public:
  // STEPWELL_NVML_PATH, else the driver's name for it.
  static std::string PathToLoad();
  // kNotFound: there is none, or one without what nothing goes on without. It stays loaded for
  // ever: a thread may hang in it.
  static absl::StatusOr<std::shared_ptr<const NvmlLibrary>> Load(const std::string& path);

  // Null where the library has none.
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*device_count)(unsigned*) = nullptr;
  int (*device_by_index)(unsigned, nvml::Device*) = nullptr;
  int (*uuid)(nvml::Device, char*, unsigned) = nullptr;
  int (*name)(nvml::Device, char*, unsigned) = nullptr;
  int (*utilization)(nvml::Device, nvml::Utilization*) = nullptr;
  int (*memory)(nvml::Device, nvml::Memory*) = nullptr;
  int (*memory_v2)(nvml::Device, nvml::MemoryV2*) = nullptr;
  int (*power_usage)(nvml::Device, unsigned*) = nullptr;
  int (*power_limit)(nvml::Device, unsigned*) = nullptr;
  int (*energy)(nvml::Device, unsigned long long*) = nullptr;
  int (*temperature)(nvml::Device, unsigned, unsigned*) = nullptr;
  int (*temperature_v)(nvml::Device, nvml::TemperatureV1*) = nullptr;
  int (*clock)(nvml::Device, unsigned, unsigned*) = nullptr;
  int (*clock_event_reasons)(nvml::Device, unsigned long long*) = nullptr;
  int (*field_values)(nvml::Device, int, nvml::FieldValue*) = nullptr;
  int (*pcie_throughput)(nvml::Device, unsigned, unsigned*) = nullptr;
  int (*mig_mode)(nvml::Device, unsigned*, unsigned*) = nullptr;
  int (*mig_count_max)(nvml::Device, unsigned*) = nullptr;
  int (*mig_by_index)(nvml::Device, unsigned, nvml::Device*) = nullptr;
  int (*gpu_instance)(nvml::Device, unsigned*) = nullptr;
  int (*gpm_support)(nvml::Device, nvml::GpmSupport*) = nullptr;
  int (*gpm_alloc)(nvml::GpmSample*) = nullptr;
  int (*gpm_free)(nvml::GpmSample) = nullptr;
  int (*gpm_sample)(nvml::Device, nvml::GpmSample) = nullptr;
  int (*gpm_mig_sample)(nvml::Device, unsigned, nvml::GpmSample) = nullptr;
  int (*gpm_metrics)(nvml::GpmMetricsGet*) = nullptr;

  // "nvmlDeviceGetPowerUsage: Not Supported". kUnimplemented for what this device or driver cannot
  // do, kPermissionDenied, kDataLoss for a device that is lost, kUnavailable else.
  absl::Status StatusOf(int result, const char* call) const;
};

}  // namespace stepwell::agent
