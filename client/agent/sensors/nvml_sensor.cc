#include "client/agent/sensors/nvml_sensor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stepwell::agent {
namespace {

constexpr double kMilli = 1e-3;
constexpr double kMega = 1e6;
constexpr double kKib = 1024;
constexpr double kMib = 1024 * 1024;
// The library measures PCIe for 20 ms in each direction, and the caller waits.
constexpr absl::Duration kPcieIntervalMin = absl::Milliseconds(500);

struct Reason {
  std::uint64_t bit;
  const char* label;
};
constexpr std::array<Reason, kThrottleReasonCount> kReasons = {
    {{nvml::kReasonPowerCap, "power_cap"},
     {nvml::kReasonHardwareSlowdown, "hw_slowdown"},
     {nvml::kReasonSyncBoost, "sync_boost"},
     {nvml::kReasonSoftwareThermal, "sw_thermal"},
     {nvml::kReasonHardwareThermal, "hw_thermal"},
     {nvml::kReasonPowerBrake, "power_brake"}}};

std::map<std::string, std::string> LabelsOf(const NvmlDeviceFace& face) {
  std::map<std::string, std::string> labels = {{"device", face.uuid}};
  if (face.is_slice()) labels["parent"] = face.parent_uuid;
  return labels;
}

// kUnavailable for an unknown type.
absl::StatusOr<double> NumberOf(const nvml::FieldValue& field) {
  switch (static_cast<nvml::ValueType>(field.value_type)) {
    case nvml::kDouble:
      return field.value.as_double;
    case nvml::kUnsignedInt:
      return field.value.as_unsigned_int;
    case nvml::kUnsignedLong:
      return static_cast<double>(field.value.as_unsigned_long);
    case nvml::kUnsignedLongLong:
      return static_cast<double>(field.value.as_unsigned_long_long);
    case nvml::kSignedLongLong:
      return static_cast<double>(field.value.as_signed_long_long);
    case nvml::kSignedInt:
      return field.value.as_signed_int;
    case nvml::kUnsignedShort:
      return field.value.as_unsigned_short;
  }
  return absl::UnavailableError("a value of an unknown type");
}

}  // namespace

NvmlSensor::NvmlSensor(std::shared_ptr<NvmlSession> session, NvmlDeviceFace face)
    : Sensor({face.uuid, "gpu", Cadence::kFast, SeenBy::kDevice}),
      session_(std::move(session)),
      nvml_(session_->library()),
      face_(face),
      labels_(LabelsOf(face)),
      gpm_(session_, face),
      answers_(face.uuid) {}

void NvmlSensor::Forget() {
  for (Rate& rate : rates_) rate.Forget();
  gpm_.Forget();
}

template <typename Function, typename... Arguments>
bool NvmlSensor::Ask(Question question, const char* name, Function function, Reading& reading,
                     Arguments... arguments) {
  if (!answers_.MayAsk(question, reading)) {
    answers_.Miss(question, reading);
    return false;
  }
  if (function == nullptr) {
    return answers_.Settle(
        question, absl::UnimplementedError(absl::StrCat(name, ": the driver has none")), reading);
  }
  return answers_.Settle(question, nvml_.StatusOf(function(device_, arguments...), name), reading);
}

void NvmlSensor::Add(Reading& reading, const SystemMetric& metric, double value) {
  if (!reading.Wants(metric)) return;
  const SensedSeries*& series = series_[&metric];
  if (series == nullptr) series = reading.Find(metric, labels_);
  reading.AddFound(series, value);
}

void NvmlSensor::Read(Reading& reading) {
  const NvmlSession::Call call(*session_, face_.uuid);
  device_ = call.device();
  answers_.Begin();
  if (call.is_beginning()) {
    return MissAll(reading, absl::UnavailableError("the library is initialised anew"));
  }
  if (device_ == nullptr) {
    session_->Doubt(face_.uuid);
    return MissAll(reading, absl::UnavailableError("the library does not see the device"));
  }
  if (!face_.is_slice()) ReadWhole(reading);
  ReadMemory(reading);
  ReadGpm(reading);
  if (!face_.is_slice()) ReadPcie(reading);
  if (answers_.lost().ok()) {
    sample_count_ = std::max(1, static_cast<int>(reading.samples().size()));
    return;
  }
  session_->Doubt(face_.uuid);
  Forget();
  MissAll(reading, absl::UnavailableError(answers_.lost().message()));
}

void NvmlSensor::MissAll(Reading& reading, const absl::Status& why) const {
  const int left = sample_count_ - static_cast<int>(reading.samples().size());
  reading.Miss("gpu", face_.uuid, std::max(1, left), why);
}

void NvmlSensor::ReadWhole(Reading& reading) {
  ReadUtilization(reading);
  ReadPower(reading);
  ReadTemperature(reading);
  ReadClocks(reading);
  ReadThrottle(reading);
  ReadFields(reading);
}

void NvmlSensor::ReadUtilization(Reading& reading) {
  nvml::Utilization found{};
  if (!Ask(Question::kUtilization, "nvmlDeviceGetUtilizationRates", nvml_.utilization, reading,
           &found)) {
    return;
  }
  Add(reading, metrics::kGpuUtil, found.gpu);
  Add(reading, metrics::kGpuMemoryUtil, found.memory);
}

// The second version leaves what the driver keeps for itself out of what is used.
void NvmlSensor::ReadMemory(Reading& reading) {
  nvml::MemoryV2 found{};
  found.version = nvml::kMemoryV2;
  if (!answers_.MayAsk(Question::kMemory, reading))
    return answers_.Miss(Question::kMemory, reading);
  const bool has_v2 = nvml_.memory_v2 != nullptr && nvml_.memory_v2(device_, &found) == 0;
  if (has_v2) {
    answers_.Settle(Question::kMemory, absl::OkStatus(), reading);
  } else {
    nvml::Memory plain{};
    if (!Ask(Question::kMemory, "nvmlDeviceGetMemoryInfo", nvml_.memory, reading, &plain)) return;
    found = {0, plain.total, 0, plain.free, plain.used};
  }
  Add(reading, metrics::kGpuFreeMemory, static_cast<double>(found.free));
  Add(reading, metrics::kGpuUsedMemory, static_cast<double>(found.used));
  Add(reading, metrics::kGpuTotalMemory, static_cast<double>(found.total));
}

void NvmlSensor::ReadPower(Reading& reading) {
  unsigned milliwatts = 0;
  if (Ask(Question::kPower, "nvmlDeviceGetPowerUsage", nvml_.power_usage, reading, &milliwatts)) {
    Add(reading, metrics::kGpuPower, milliwatts * kMilli);
  }
  unsigned limit_milliwatts = 0;
  if (Ask(Question::kPowerLimit, "nvmlDeviceGetEnforcedPowerLimit", nvml_.power_limit, reading,
          &limit_milliwatts)) {
    Add(reading, metrics::kGpuPowerLimit, limit_milliwatts * kMilli);
  }
  unsigned long long millijoules = 0;
  if (Ask(Question::kEnergy, "nvmlDeviceGetTotalEnergyConsumption", nvml_.energy, reading,
          &millijoules)) {
    Add(reading, metrics::kGpuEnergy, static_cast<double>(millijoules) * kMilli);
  }
}

void NvmlSensor::ReadTemperature(Reading& reading) {
  if (nvml_.temperature_v != nullptr) {
    nvml::TemperatureV1 found{nvml::kTemperatureV1, nvml::kTemperatureGpu, 0};
    if (Ask(Question::kTemperature, "nvmlDeviceGetTemperatureV", nvml_.temperature_v, reading,
            &found)) {
      Add(reading, metrics::kGpuTemperature, found.celsius);
    }
    return;
  }
  unsigned celsius = 0;
  if (Ask(Question::kTemperature, "nvmlDeviceGetTemperature", nvml_.temperature, reading,
          nvml::kTemperatureGpu, &celsius)) {
    Add(reading, metrics::kGpuTemperature, celsius);
  }
}

void NvmlSensor::ReadClocks(Reading& reading) {
  unsigned megahertz = 0;
  if (Ask(Question::kSmClock, "nvmlDeviceGetClockInfo", nvml_.clock, reading, nvml::kClockSm,
          &megahertz)) {
    Add(reading, metrics::kGpuSmClock, megahertz * kMega);
  }
  if (Ask(Question::kMemoryClock, "nvmlDeviceGetClockInfo", nvml_.clock, reading,
          nvml::kClockMemory, &megahertz)) {
    Add(reading, metrics::kGpuMemoryClock, megahertz * kMega);
  }
}

void NvmlSensor::ReadThrottle(Reading& reading) {
  unsigned long long bits = 0;
  if (!Ask(Question::kThrottle, "nvmlDeviceGetCurrentClocksEventReasons", nvml_.clock_event_reasons,
           reading, &bits)) {
    return;
  }
  if (!reading.Wants(metrics::kGpuThrottle)) return;
  for (std::size_t i = 0; i < kReasons.size(); ++i) {
    if (throttle_series_[i] == nullptr) {
      std::map<std::string, std::string> labels = labels_;
      labels["reason"] = kReasons[i].label;
      throttle_series_[i] = reading.Find(metrics::kGpuThrottle, labels);
    }
    reading.AddFound(throttle_series_[i], (bits & kReasons[i].bit) != 0 ? 1 : 0);
  }
}

// Several values in one call, each with a result of its own.
void NvmlSensor::ReadFields(Reading& reading) {
  struct Wanted {
    Question question;
    unsigned field;
    unsigned scope;
  };
  static constexpr Wanted kFields[] = {
      {Question::kMemoryTemperature, nvml::kFieldMemoryTemperature, 0},
      {Question::kNvlinkSent, nvml::kFieldNvlinkSentKib, nvml::kScopeAllLinks},
      {Question::kNvlinkReceived, nvml::kFieldNvlinkReceivedKib, nvml::kScopeAllLinks},
      {Question::kPcieSent, nvml::kFieldPcieSentBytes, 0},
      {Question::kPcieReceived, nvml::kFieldPcieReceivedBytes, 0}};
  pcie_sent_.reset();
  pcie_received_.reset();
  std::array<nvml::FieldValue, std::size(kFields)> values{};
  std::array<const Wanted*, std::size(kFields)> asked{};
  std::size_t count = 0;
  for (const Wanted& wanted : kFields) {
    // PCIe has other sources, which settle whether it is absent.
    const bool is_pcie =
        wanted.question == Question::kPcieSent || wanted.question == Question::kPcieReceived;
    if (!answers_.MayAsk(wanted.question, reading)) {
      if (!is_pcie) answers_.Miss(wanted.question, reading);
      continue;
    }
    values[count].field = wanted.field;
    values[count].scope = wanted.scope;
    asked[count++] = &wanted;
  }
  if (count == 0) return;
  absl::Status status = absl::UnimplementedError("nvmlDeviceGetFieldValues: the driver has none");
  if (nvml_.field_values != nullptr) {
    status = nvml_.StatusOf(nvml_.field_values(device_, static_cast<int>(count), values.data()),
                            "nvmlDeviceGetFieldValues");
  }
  for (std::size_t i = 0; i < count; ++i) {
    const nvml::FieldValue& value = values[i];
    const std::string name = absl::StrCat("nvmlDeviceGetFieldValues(", value.field, ")");
    absl::Status why = status.ok() ? nvml_.StatusOf(value.result, name.c_str()) : status;
    const absl::StatusOr<double> number = NumberOf(value);
    if (why.ok()) why = number.status();
    const Question question = asked[i]->question;
    // PCIe's absence is settled by its other sources, but for a device that is lost.
    const bool is_pcie = question == Question::kPcieSent || question == Question::kPcieReceived;
    const bool known =
        is_pcie && !absl::IsDataLoss(why) ? why.ok() : answers_.Settle(question, why, reading);
    if (known) TakeField(question, *number, value.value_type != nvml::kUnsignedInt, reading);
  }
}

void NvmlSensor::TakeField(Question question, double value, bool is_wide, Reading& reading) {
  if (question == Question::kMemoryTemperature) {
    return Add(reading, metrics::kGpuMemoryTemperature, value);
  }
  if (value < 0) return;
  Rate& rate = rates_[static_cast<std::size_t>(question)];
  const auto total = static_cast<std::uint64_t>(value);
  const std::optional<double> per_second = rate.Next(total, reading.Now());
  if (!per_second) return;
  if (question == Question::kNvlinkSent) {
    return Add(reading, metrics::kGpuNvlinkSent, *per_second * kKib);
  }
  if (question == Question::kNvlinkReceived) {
    return Add(reading, metrics::kGpuNvlinkRecv, *per_second * kKib);
  }
  // Some drivers count PCIe bytes in 32 bits, which a busy link fills several times a second: a
  // counter that was never seen above that is not believed.
  if (!is_wide || total <= 0xffffffffu) return;
  (question == Question::kPcieSent ? pcie_sent_ : pcie_received_) = per_second;
}

void NvmlSensor::ReadGpm(Reading& reading) {
  gpm_pending_ = false;
  if (!answers_.MayAsk(Question::kGpm, reading)) return answers_.Miss(Question::kGpm, reading);
  nvml::Device device = device_;
  std::optional<NvmlSession::Call> parent;
  if (face_.is_slice()) {
    parent.emplace(*session_, face_.parent_uuid);
    device = parent->device();
    if (device == nullptr) {
      answers_.Settle(Question::kGpm,
                      absl::UnavailableError("the library does not see the GPU of the slice"),
                      reading);
      return;
    }
  }
  const absl::StatusOr<std::map<unsigned, double>> found = gpm_.Sample(device, reading.Now());
  if (!answers_.Settle(Question::kGpm, found.status(), reading)) return;
  static constexpr std::pair<unsigned, const SystemMetric*> kPercents[] = {
      {nvml::kGpmSmUtil, &metrics::kGpuSmActivity},
      {nvml::kGpmSmOccupancy, &metrics::kGpuSmOccupancy},
      {nvml::kGpmTensorUtil, &metrics::kGpuTensorActivity},
      {nvml::kGpmDramUtil, &metrics::kGpuDramActivity},
      {nvml::kGpmFp64Util, &metrics::kGpuFp64Activity},
      {nvml::kGpmFp32Util, &metrics::kGpuFp32Activity},
      {nvml::kGpmFp16Util, &metrics::kGpuFp16Activity}};
  gpm_pending_ = found->empty();
  if (gpm_pending_) return;
  for (const auto& [metric, ours] : kPercents) {
    if (const auto value = found->find(metric); value != found->end()) {
      Add(reading, *ours, value->second);
    } else {
      reading.Miss(*ours, face_.uuid, absl::UnimplementedError("not among this device's monitors"));
    }
  }
  const auto take = [&](unsigned metric, std::optional<double>& rate) {
    if (const auto value = found->find(metric); value != found->end()) {
      rate = value->second * kMib;
    }
  };
  take(nvml::kGpmPcieSentMib, pcie_sent_);
  take(nvml::kGpmPcieReceivedMib, pcie_received_);
}

void NvmlSensor::ReadPcie(Reading& reading) {
  ReadPcieOf(Question::kPcieSent, nvml::kPcieSent, metrics::kGpuPcieSent, pcie_sent_, reading);
  ReadPcieOf(Question::kPcieReceived, nvml::kPcieReceived, metrics::kGpuPcieRecv, pcie_received_,
             reading);
}

// The monitors' rate or the counter's where there is one, else the library's own measurement.
void NvmlSensor::ReadPcieOf(Question question, unsigned direction, const SystemMetric& metric,
                            std::optional<double> counted, Reading& reading) {
  if (counted) {
    answers_.Settle(question, absl::OkStatus(), reading);
    return Add(reading, metric, *counted);
  }
  if (gpm_pending_ || !answers_.lost().ok()) return;
  if (reading.Interval() < kPcieIntervalMin) {
    answers_.Settle(question, absl::UnimplementedError("needs an interval of 500ms or more here"),
                    reading);
    return;
  }
  unsigned kilobytes_per_second = 0;
  if (Ask(question, "nvmlDeviceGetPcieThroughput", nvml_.pcie_throughput, reading, direction,
          &kilobytes_per_second)) {
    Add(reading, metric, kilobytes_per_second * 1000.0);
  }
}

}  // namespace stepwell::agent
