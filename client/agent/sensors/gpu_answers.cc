#include "client/agent/sensors/gpu_answers.h"

#include <algorithm>

namespace stepwell::agent {
namespace {

// What a device cannot do it may do after a driver's upgrade: asked again, but not each tick.
constexpr absl::Duration kAskAgainAfter = absl::Minutes(1);

std::span<const SystemMetric* const> MetricsOf(GpuQuestion question) {
  using namespace metrics;  // NOLINT(google-build-using-namespace): a table of nothing else
  static constexpr const SystemMetric* kUtilization[] = {&kGpuUtil, &kGpuMemoryUtil};
  static constexpr const SystemMetric* kComputeUtilization[] = {&kGpuUtil};
  static constexpr const SystemMetric* kMemoryUtilization[] = {&kGpuMemoryUtil};
  static constexpr const SystemMetric* kMemory[] = {&kGpuFreeMemory, &kGpuUsedMemory,
                                                    &kGpuTotalMemory};
  static constexpr const SystemMetric* kPower[] = {&kGpuPower};
  static constexpr const SystemMetric* kPowerLimit[] = {&kGpuPowerLimit};
  static constexpr const SystemMetric* kEnergy[] = {&kGpuEnergy};
  static constexpr const SystemMetric* kTemperature[] = {&kGpuTemperature};
  static constexpr const SystemMetric* kSmClock[] = {&kGpuSmClock};
  static constexpr const SystemMetric* kMemoryClock[] = {&kGpuMemoryClock};
  static constexpr const SystemMetric* kThrottle[] = {&kGpuThrottle};
  static constexpr const SystemMetric* kMemoryTemperature[] = {&kGpuMemoryTemperature};
  static constexpr const SystemMetric* kNvlinkSent[] = {&kGpuNvlinkSent};
  static constexpr const SystemMetric* kNvlinkReceived[] = {&kGpuNvlinkRecv};
  static constexpr const SystemMetric* kPcieSent[] = {&kGpuPcieSent};
  static constexpr const SystemMetric* kPcieReceived[] = {&kGpuPcieRecv};
  static constexpr const SystemMetric* kGpm[] = {
      &kGpuSmActivity,   &kGpuSmOccupancy,  &kGpuTensorActivity, &kGpuDramActivity,
      &kGpuFp64Activity, &kGpuFp32Activity, &kGpuFp16Activity};
  switch (question) {
    case GpuQuestion::kUtilization:
      return kUtilization;
    case GpuQuestion::kComputeUtilization:
      return kComputeUtilization;
    case GpuQuestion::kMemoryUtilization:
      return kMemoryUtilization;
    case GpuQuestion::kMemory:
      return kMemory;
    case GpuQuestion::kPower:
      return kPower;
    case GpuQuestion::kPowerLimit:
      return kPowerLimit;
    case GpuQuestion::kEnergy:
      return kEnergy;
    case GpuQuestion::kTemperature:
      return kTemperature;
    case GpuQuestion::kSmClock:
      return kSmClock;
    case GpuQuestion::kMemoryClock:
      return kMemoryClock;
    case GpuQuestion::kThrottle:
      return kThrottle;
    case GpuQuestion::kMemoryTemperature:
      return kMemoryTemperature;
    case GpuQuestion::kNvlinkSent:
      return kNvlinkSent;
    case GpuQuestion::kNvlinkReceived:
      return kNvlinkReceived;
    case GpuQuestion::kPcieSent:
      return kPcieSent;
    case GpuQuestion::kPcieReceived:
      return kPcieReceived;
    case GpuQuestion::kGpm:
      return kGpm;
  }
  return {};
}

}  // namespace

bool GpuAnswers::MayAsk(GpuQuestion question, const Reading& reading) const {
  const Standing& standing = StandingOf(question);
  const std::span<const SystemMetric* const> list = MetricsOf(question);
  return lost_.ok() && (standing.why.ok() || reading.Now() >= standing.ask_again_at) &&
         std::any_of(list.begin(), list.end(),
                     [&](const SystemMetric* metric) { return reading.Wants(*metric); });
}

bool GpuAnswers::Settle(GpuQuestion question, const absl::Status& why, Reading& reading) {
  if (absl::IsDataLoss(why)) {
    lost_ = why;
    return false;
  }
  Standing& standing = standing_[static_cast<std::size_t>(question)];
  standing.why = why;
  if (why.ok()) return true;
  const bool may_pass = KindOf(why) == AbsenceKind::kFailed;
  standing.ask_again_at = may_pass ? -absl::InfiniteDuration() : reading.Now() + kAskAgainAfter;
  Miss(question, reading);
  return false;
}

void GpuAnswers::Miss(GpuQuestion question, Reading& reading) const {
  const absl::Status& why = StandingOf(question).why;
  if (why.ok() || !lost_.ok()) return;
  for (const SystemMetric* metric : MetricsOf(question)) reading.Miss(*metric, device_, why);
}

}  // namespace stepwell::agent
