#include "client/agent/sensors/pressure_sensor.h"

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace stepwell::agent {
namespace {

struct Source {
  const char* name;
  const char* metric_group;
  const char* path;
  const SystemMetric& some;
  const SystemMetric* full;
};

const Source& SourceOf(PressureSensor::Of of) {
  static const Source kCpu = {"cpu_pressure", "cpu", "proc/pressure/cpu", metrics::kCpuPressureSome,
                              nullptr};
  static const Source kMemory = {"memory_pressure", "memory", "proc/pressure/memory",
                                 metrics::kMemoryPressureSome, &metrics::kMemoryPressureFull};
  static const Source kDisk = {"disk_pressure", "disk", "proc/pressure/io",
                               metrics::kDiskPressureSome, &metrics::kDiskPressureFull};
  switch (of) {
    case PressureSensor::Of::kCpu:
      return kCpu;
    case PressureSensor::Of::kMemory:
      return kMemory;
    case PressureSensor::Of::kDisk:
      return kDisk;
  }
  return kCpu;
}

// "some avg10=0.00 avg60=0.00 avg300=0.00 total=12": microseconds since boot.
std::optional<std::uint64_t> TotalOf(const std::string& text, absl::string_view wanted) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words = Words(line);
    if (words.empty() || words[0] != wanted) continue;
    for (absl::string_view word : words) {
      if (absl::StartsWith(word, "total=")) return Number(word.substr(6));
    }
  }
  return std::nullopt;
}

constexpr double kPercentPerMicrosecond = 100.0 / 1e6;

}  // namespace

PressureSensor::PressureSensor(Of of, KernelText kernel)
    : Sensor({SourceOf(of).name, SourceOf(of).metric_group, Cadence::kFast}),
      kernel_(std::move(kernel)),
      path_(SourceOf(of).path),
      some_(SourceOf(of).some),
      full_(SourceOf(of).full) {}

void PressureSensor::Read(Reading& reading) {
  const absl::StatusOr<std::string> text = kernel_.Read(path_);
  absl::Status status = text.status();
  if (status.ok()) status = Add(reading, *text, "some", some_, some_rate_);
  if (status.ok() && full_ != nullptr) status = Add(reading, *text, "full", *full_, full_rate_);
  if (!status.ok()) {
    reading.Miss(face().metric_group, face().name, full_ == nullptr ? 1 : 2, status);
  }
}

absl::Status PressureSensor::Add(Reading& reading, const std::string& text, absl::string_view line,
                                 const SystemMetric& metric, Rate& rate) const {
  const std::optional<std::uint64_t> total_us = TotalOf(text, line);
  if (!total_us) return Unexpected(path_, "no total");
  if (const std::optional<double> us_per_second = rate.Next(*total_us, reading.Now())) {
    reading.Add(metric, std::min(100.0, *us_per_second * kPercentPerMicrosecond));
  }
  return absl::OkStatus();
}

void PressureSensor::Forget() {
  some_rate_.Forget();
  full_rate_.Forget();
}

}  // namespace stepwell::agent
