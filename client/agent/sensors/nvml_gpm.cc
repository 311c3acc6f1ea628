#include "client/agent/sensors/nvml_gpm.h"

#include <array>
#include <cmath>
#include <utility>

#include "base/status_macros.h"

namespace stepwell::agent {
namespace {

constexpr std::array kWanted = {
    nvml::kGpmSmUtil,   nvml::kGpmSmOccupancy, nvml::kGpmTensorUtil,
    nvml::kGpmDramUtil, nvml::kGpmFp64Util,    nvml::kGpmFp32Util,
    nvml::kGpmFp16Util, nvml::kGpmPcieSentMib, nvml::kGpmPcieReceivedMib};
static_assert(kWanted.size() <= nvml::kGpmMetricCountMax);

}  // namespace

NvmlGpm::~NvmlGpm() {
  const auto release = session_->library().gpm_free;
  if (release == nullptr) return;
  if (before_ != nullptr) release(before_);
  if (after_ != nullptr) release(after_);
}

absl::Status NvmlGpm::Prepare(nvml::Device device) {
  const NvmlLibrary& nvml = session_->library();
  const bool has_sample =
      face_.is_slice() ? nvml.gpm_mig_sample != nullptr : nvml.gpm_sample != nullptr;
  if (nvml.gpm_support == nullptr || nvml.gpm_alloc == nullptr || nvml.gpm_metrics == nullptr ||
      !has_sample) {
    return absl::UnimplementedError("nvmlGpmSampleGet: this driver has no such call");
  }
  nvml::GpmSupport support{nvml::kGpmSupportV1, 0};
  STEPWELL_RETURN_IF_ERROR(
      nvml.StatusOf(nvml.gpm_support(device, &support), "nvmlGpmQueryDeviceSupport"));
  if (support.is_supported == 0) {
    return absl::UnimplementedError("nvmlGpmQueryDeviceSupport: not on this device");
  }
  for (nvml::GpmSample* sample : {&before_, &after_}) {
    if (*sample != nullptr) continue;
    STEPWELL_RETURN_IF_ERROR(nvml.StatusOf(nvml.gpm_alloc(sample), "nvmlGpmSampleAlloc"));
  }
  prepared_ = true;
  return absl::OkStatus();
}

absl::Status NvmlGpm::Take(nvml::Device device) {
  const NvmlLibrary& nvml = session_->library();
  if (face_.is_slice()) {
    return nvml.StatusOf(nvml.gpm_mig_sample(device, face_.gpu_instance, after_),
                         "nvmlGpmMigSampleGet");
  }
  return nvml.StatusOf(nvml.gpm_sample(device, after_), "nvmlGpmSampleGet");
}

absl::StatusOr<std::map<unsigned, double>> NvmlGpm::Sample(nvml::Device device,
                                                           absl::Duration now) {
  if (!prepared_) STEPWELL_RETURN_IF_ERROR(Prepare(device));
  if (has_before_ && now - taken_at_ < kSpanMin) return std::map<unsigned, double>();
  STEPWELL_RETURN_IF_ERROR(Take(device));
  const bool compare = std::exchange(has_before_, true);
  taken_at_ = now;
  absl::StatusOr<std::map<unsigned, double>> values = std::map<unsigned, double>();
  if (compare) values = Compare();
  std::swap(before_, after_);
  return values;
}

absl::StatusOr<std::map<unsigned, double>> NvmlGpm::Compare() const {
  nvml::GpmMetricsGet get{};
  get.version = nvml::kGpmMetricsGetV1;
  get.metric_count = kWanted.size();
  get.before = before_;
  get.after = after_;
  for (std::size_t i = 0; i < kWanted.size(); ++i) get.metrics[i].metric = kWanted[i];
  STEPWELL_RETURN_IF_ERROR(
      session_->library().StatusOf(session_->library().gpm_metrics(&get), "nvmlGpmMetricsGet"));
  std::map<unsigned, double> values;
  for (std::size_t i = 0; i < kWanted.size(); ++i) {
    const nvml::GpmMetric& metric = get.metrics[i];
    if (metric.result == nvml::kSuccess && std::isfinite(metric.value)) {
      values[kWanted[i]] = metric.value;
    }
  }
  return values;
}

}  // namespace stepwell::agent
