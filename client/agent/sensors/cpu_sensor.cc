#include "client/agent/sensors/cpu_sensor.h"

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace stepwell::agent {
namespace {

constexpr char kStat[] = "proc/stat";

}  // namespace

void CpuSensor::Read(Reading& reading) {
  if (const absl::Status status = ReadTimes(reading); !status.ok()) {
    reading.Miss(metrics::kCpuUtilSimple, "", status);
  }
}

// user nice system idle iowait irq softirq steal; guest time is part of user already.
absl::StatusOr<CpuSensor::Times> CpuSensor::ParseTimes(
    const std::vector<absl::string_view>& words) {
  if (words.size() < 9) return Unexpected(kStat, "a cpu line is too short");
  Times times;
  for (std::size_t i = 1; i <= 8; ++i) {
    const std::optional<std::uint64_t> ticks = Number(words[i]);
    if (!ticks) return Unexpected(kStat, "a cpu line has no numbers");
    times.total += *ticks;
    if (i != 4 && i != 5) times.busy += *ticks;
  }
  return times;
}

absl::Status CpuSensor::ReadTimes(Reading& reading) {
  STEPWELL_ASSIGN_OR_RETURN(const std::string text, kernel_.Read(kStat));
  const bool with_cores = reading.Wants(metrics::kCpuUtilCore);
  bool any = false;
  // The cpu lines come first; what follows them (interrupts) is long and of no use here.
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::StartsWith(line, "cpu")) break;
    const std::vector<absl::string_view> words = Words(line);
    const bool is_all = words[0] == "cpu";
    if (!is_all && !with_cores) break;
    STEPWELL_ASSIGN_OR_RETURN(const Times times, ParseTimes(words));
    AddUtil(reading, std::string(words[0]), times);
    any = any || is_all;
  }
  return any ? absl::OkStatus() : Unexpected(kStat, "no cpu line");
}

void CpuSensor::AddUtil(Reading& reading, const std::string& processor, const Times& times) {
  const auto [known, is_new] = earlier_.try_emplace(processor, times);
  const Times before = std::exchange(known->second, times);
  // Counters that went back (a resumed machine, a hot-plugged processor) only start anew. Idle and
  // iowait may step back by a tick, so that total alone says nothing.
  if (is_new || times.total <= before.total || times.busy < before.busy) return;
  const auto total = static_cast<double>(times.total - before.total);
  const double util = std::min(100.0, 100 * static_cast<double>(times.busy - before.busy) / total);
  if (processor == "cpu") {
    reading.Add(metrics::kCpuUtilSimple, util);
  } else {
    reading.Add(metrics::kCpuUtilCore, {{"core", processor.substr(3)}}, util);
  }
}

}  // namespace stepwell::agent
