#include "client/agent/sensors/amd_sensor.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace stepwell::agent {

AmdSensor::AmdSensor(std::shared_ptr<const AmdLibrary> library, AmdLibrary::Device device)
    : Sensor({device.name, "gpu", Cadence::kFast, SeenBy::kDevice}),
      library_(std::move(library)),
      device_(device),
      labels_({{"device", device.name}}),
      answers_(device.name) {}

template <typename Ask>
void AmdSensor::ReadOne(GpuQuestion question, const SystemMetric& metric, Reading& reading,
                        Ask ask) {
  if (!answers_.MayAsk(question, reading)) return answers_.Miss(question, reading);
  const absl::StatusOr<double> value = ask();
  if (answers_.Settle(question, value.status(), reading)) reading.Add(metric, labels_, *value);
}

void AmdSensor::Read(Reading& reading) {
  answers_.Begin();
  const AmdLibrary& library = *library_;
  ReadOne(GpuQuestion::kComputeUtilization, metrics::kGpuUtil, reading,
          [&] { return library.UtilPercent(device_); });
  ReadOne(GpuQuestion::kMemoryUtilization, metrics::kGpuMemoryUtil, reading,
          [&] { return library.MemoryUtilPercent(device_); });
  ReadOne(GpuQuestion::kTemperature, metrics::kGpuTemperature, reading,
          [&] { return library.Celsius(device_, AmdLibrary::Sensor::kEdge); });
  ReadOne(GpuQuestion::kMemoryTemperature, metrics::kGpuMemoryTemperature, reading,
          [&] { return library.Celsius(device_, AmdLibrary::Sensor::kMemory); });
  ReadOne(GpuQuestion::kSmClock, metrics::kGpuSmClock, reading,
          [&] { return library.Hertz(device_, AmdLibrary::Clock::kShader); });
  ReadOne(GpuQuestion::kMemoryClock, metrics::kGpuMemoryClock, reading,
          [&] { return library.Hertz(device_, AmdLibrary::Clock::kMemory); });
  ReadMemory(reading);
  ReadEnergy(reading);
  MissOthers(reading);
}

void AmdSensor::ReadMemory(Reading& reading) {
  if (!answers_.MayAsk(GpuQuestion::kMemory, reading)) {
    return answers_.Miss(GpuQuestion::kMemory, reading);
  }
  const absl::StatusOr<AmdLibrary::Bytes> bytes = library_->Memory(device_);
  if (!answers_.Settle(GpuQuestion::kMemory, bytes.status(), reading)) return;
  const auto total = static_cast<double>(bytes->total);
  const auto used = static_cast<double>(bytes->used);
  reading.Add(metrics::kGpuTotalMemory, labels_, total);
  reading.Add(metrics::kGpuUsedMemory, labels_, used);
  reading.Add(metrics::kGpuFreeMemory, labels_, std::max(0.0, total - used));
}

// Power is the energy's rate: what the libraries call power is laid out differently in each release,
// and an average of unknown length.
void AmdSensor::ReadEnergy(Reading& reading) {
  if (!answers_.MayAsk(GpuQuestion::kEnergy, reading)) {
    answers_.Miss(GpuQuestion::kEnergy, reading);
    return answers_.Miss(GpuQuestion::kPower, reading);
  }
  const absl::StatusOr<double> joules = library_->Joules(device_);
  const bool known = answers_.Settle(GpuQuestion::kEnergy, joules.status(), reading);
  answers_.Settle(GpuQuestion::kPower, joules.status(), reading);
  if (!known) return;
  reading.Add(metrics::kGpuEnergy, labels_, *joules);
  const auto total = static_cast<std::uint64_t>(*joules * 1e3);
  if (const auto rate = millijoules_.Next(total, reading.Now())) {
    reading.Add(metrics::kGpuPower, labels_, *rate / 1e3);
  }
}

void AmdSensor::MissOthers(Reading& reading) {
  for (const GpuQuestion question :
       {GpuQuestion::kPowerLimit, GpuQuestion::kThrottle, GpuQuestion::kNvlinkSent,
        GpuQuestion::kNvlinkReceived, GpuQuestion::kPcieSent, GpuQuestion::kPcieReceived,
        GpuQuestion::kGpm}) {
    if (answers_.MayAsk(question, reading)) {
      answers_.Settle(question, absl::UnimplementedError("not read from AMD's libraries"), reading);
    } else {
      answers_.Miss(question, reading);
    }
  }
}

// What AMD's driver serves is listed by its place on the bus, "0000:c1:00.0".
bool AmdFinder::HasGpu() const {
  constexpr char kDevices[] = "sys/bus/pci/drivers/amdgpu";
  for (const std::string& name : kernel_.List(kDevices)) {
    if (absl::StrContains(name, ":")) return true;
  }
  return false;
}

Findings AmdFinder::Find() {
  Findings findings;
  // The libraries log and scan the bus: not on a machine that has no such GPU.
  if (!known_.empty() || !HasGpu()) return findings;
  const auto miss = [&](const absl::Status& why) {
    findings.absences.push_back(
        {"gpu", KindOf(why), "amd", 1, absl::StrCat("AMD: ", why.message())});
  };
  if (library_ == nullptr) {
    auto library = AmdLibrary::Load(paths_);
    if (!library.ok()) {
      miss(library.status());
      return findings;
    }
    library_ = *std::move(library);
  }
  const absl::StatusOr<std::vector<AmdLibrary::Device>> devices = library_->List();
  if (!devices.ok()) {
    miss(devices.status());
    return findings;
  }
  for (const AmdLibrary::Device& device : *devices) {
    if (!known_.insert(device.name).second) continue;
    findings.sensors.push_back(std::make_unique<AmdSensor>(library_, device));
  }
  return findings;
}

}  // namespace stepwell::agent
