#include "client/agent/sensors/amd_sensor.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace stepwell::agent {
namespace {

constexpr double kKib = 1024;

// Of all links together, per second; none before each has been read twice. kUnimplemented: no link.
absl::StatusOr<std::optional<double>> KibPerSecond(const AmdTable::LinkKib& totals,
                                                   std::array<Rate, kXgmiLinkCount>& rates,
                                                   absl::Duration now) {
  bool has_link = false;
  std::optional<double> sum = 0.0;
  for (std::size_t i = 0; i < totals.size(); ++i) {
    if (!totals[i]) {
      rates[i].Forget();
      continue;
    }
    has_link = true;
    const std::optional<double> rate = rates[i].Next(*totals[i], now);
    if (!rate) sum = std::nullopt;
    if (sum) *sum += *rate;
  }
  if (!has_link) return absl::UnimplementedError("the driver's table counts no XGMI link");
  return sum;
}

}  // namespace

AmdSensor::AmdSensor(std::shared_ptr<const AmdLibrary> library, AmdLibrary::Device device)
    : Sensor({device.name, "gpu", Cadence::kFast, SeenBy::kDevice}),
      library_(std::move(library)),
      device_(device),
      labels_({{"device", device.name}}),
      answers_(device.name) {}

void AmdSensor::Forget() {
  millijoules_.Forget();
  throttle_.Forget();
  for (Rate& rate : received_) rate.Forget();
  for (Rate& rate : sent_) rate.Forget();
}

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
  ReadOne(GpuQuestion::kPowerLimit, metrics::kGpuPowerLimit, reading,
          [&] { return library.PowerLimitWatts(device_); });
  ReadMemory(reading);
  ReadEnergy(reading);
  ReadTable(reading);
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

void AmdSensor::ReadTable(Reading& reading) {
  const auto asks = [&](GpuQuestion question) {
    const bool may = answers_.MayAsk(question, reading);
    if (!may) answers_.Miss(question, reading);
    return may;
  };
  const bool throttle = asks(GpuQuestion::kThrottle);
  const bool sent = asks(GpuQuestion::kNvlinkSent);
  const bool received = asks(GpuQuestion::kNvlinkReceived);
  if (!throttle && !sent && !received) return;
  const absl::StatusOr<AmdTable> table = library_->Table(device_);
  if (throttle) TakeThrottle(table, reading);
  if (sent) {
    TakeLinks(GpuQuestion::kNvlinkSent, metrics::kGpuNvlinkSent, table, &AmdTable::sent_kib, sent_,
              reading);
  }
  if (received) {
    TakeLinks(GpuQuestion::kNvlinkReceived, metrics::kGpuNvlinkRecv, table, &AmdTable::received_kib,
              received_, reading);
  }
}

void AmdSensor::TakeThrottle(const absl::StatusOr<AmdTable>& table, Reading& reading) {
  using Reasons = std::vector<AmdThrottle::Reason>;
  const absl::StatusOr<Reasons> reasons =
      table.ok() ? throttle_.Next(*table) : absl::StatusOr<Reasons>(table.status());
  if (!answers_.Settle(GpuQuestion::kThrottle, reasons.status(), reading)) {
    return throttle_.Forget();
  }
  for (const AmdThrottle::Reason& reason : *reasons) {
    std::map<std::string, std::string> labels = labels_;
    labels["reason"] = reason.label;
    reading.Add(metrics::kGpuThrottle, labels, reason.active ? 1 : 0);
  }
}

void AmdSensor::TakeLinks(GpuQuestion question, const SystemMetric& metric,
                          const absl::StatusOr<AmdTable>& table,
                          AmdTable::LinkKib AmdTable::*totals,
                          std::array<Rate, kXgmiLinkCount>& rates, Reading& reading) {
  using PerSecond = std::optional<double>;
  const absl::StatusOr<PerSecond> rate = table.ok()
                                             ? KibPerSecond((*table).*totals, rates, reading.Now())
                                             : absl::StatusOr<PerSecond>(table.status());
  if (!answers_.Settle(question, rate.status(), reading)) {
    for (Rate& one : rates) one.Forget();
    return;
  }
  if (*rate) reading.Add(metric, labels_, **rate * kKib);
}

void AmdSensor::MissOthers(Reading& reading) {
  const auto miss = [&](GpuQuestion question, const char* why) {
    if (!answers_.MayAsk(question, reading)) return answers_.Miss(question, reading);
    answers_.Settle(question, absl::UnimplementedError(why), reading);
  };
  constexpr char kNoDirection[] =
      "not read from AMD's libraries: bytes of both directions together, or packets";
  miss(GpuQuestion::kPcieSent, kNoDirection);
  miss(GpuQuestion::kPcieReceived, kNoDirection);
  miss(GpuQuestion::kGpm, "not read from AMD's libraries");
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
