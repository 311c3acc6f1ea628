#include "client/agent/sensors/load_sensor.h"

#include <array>

#include "absl/strings/numbers.h"
#include "base/status_macros.h"

namespace stepwell::agent {
namespace {

constexpr char kLoadavg[] = "proc/loadavg";

// Over 1, 5 and 15 minutes.
absl::StatusOr<std::array<double, 3>> ReadLoads(const KernelText& kernel) {
  STEPWELL_ASSIGN_OR_RETURN(const std::string text, kernel.Read(kLoadavg));
  const std::vector<absl::string_view> words = Words(text);
  std::array<double, 3> loads = {};
  for (std::size_t i = 0; i < loads.size(); ++i) {
    if (words.size() < 4 || !absl::SimpleAtod(words[i], &loads[i]) || loads[i] < 0) {
      return Unexpected(kLoadavg, "no three numbers");
    }
  }
  return loads;
}

}  // namespace

void LoadSensor::Read(Reading& reading) {
  if (!reading.Wants(metrics::kCpuLoad1m) && !reading.Wants(metrics::kCpuLoad5m) &&
      !reading.Wants(metrics::kCpuLoad15m)) {
    return;
  }
  const absl::StatusOr<std::array<double, 3>> loads = ReadLoads(kernel_);
  if (!loads.ok()) return reading.Miss("cpu", face().name, 3, loads.status());
  reading.Add(metrics::kCpuLoad1m, (*loads)[0]);
  reading.Add(metrics::kCpuLoad5m, (*loads)[1]);
  reading.Add(metrics::kCpuLoad15m, (*loads)[2]);
}

}  // namespace stepwell::agent
