#include "client/agent/sensors/process_sensor.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace stepwell::agent {

ProcessSensor::ProcessSensor(pid_t pid, KernelText kernel)
    : Sensor({absl::StrCat("process ", pid), "cpu", Cadence::kFast}),
      kernel_(std::move(kernel)),
      folder_(absl::StrCat("proc/", pid, "/")) {}

void ProcessSensor::Forget() {
  processor_ticks_.Forget();
  read_.Forget();
  written_.Forget();
}

void ProcessSensor::Read(Reading& reading) {
  const absl::Status stat = ReadStat(reading);
  // A process that is gone is an end, no failure.
  if (absl::IsNotFound(stat)) return;
  if (!stat.ok()) reading.Miss("cpu", "process", 2, stat);
  if (const absl::Status status = ReadResident(reading); !status.ok()) {
    reading.Miss("memory", "process", 1, status);
  }
  if (const absl::Status status = ReadIo(reading); !status.ok()) {
    reading.Miss("disk", "process", 2, status);
  }
}

absl::Status ProcessSensor::ReadStat(Reading& reading) {
  const std::string path = folder_ + "stat";
  STEPWELL_ASSIGN_OR_RETURN(const std::string text, kernel_.Read(path));
  // The second field is the program's name in parentheses, which may hold anything.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return Unexpected(path, "no name");
  const std::vector<absl::string_view> words = Words(absl::string_view(text).substr(name_end + 1));
  // words[0] is field 3, the state.
  if (words.size() < 20) return Unexpected(path, "too short");
  const auto user_ticks = Number(words[11]);
  const auto system_ticks = Number(words[12]);
  const auto threads = Number(words[17]);
  const auto started_at = Number(words[19]);
  if (!user_ticks || !system_ticks || !threads || !started_at) {
    return Unexpected(path, "no numbers");
  }
  if (*started_at != started_at_) Forget();
  started_at_ = *started_at;
  static const auto kTicksPerSecond = static_cast<double>(sysconf(_SC_CLK_TCK));
  if (const auto rate = processor_ticks_.Next(*user_ticks + *system_ticks, reading.Now())) {
    reading.Add(metrics::kCpuUtilProcess, 100 * *rate / kTicksPerSecond);
  }
  reading.Add(metrics::kCpuProcessThreads, static_cast<double>(*threads));
  return absl::OkStatus();
}

absl::Status ProcessSensor::ReadResident(Reading& reading) const {
  const std::string path = folder_ + "statm";
  STEPWELL_ASSIGN_OR_RETURN(const std::string text, kernel_.Read(path));
  const std::vector<absl::string_view> words = Words(text);
  const auto pages = words.size() >= 2 ? Number(words[1]) : std::nullopt;
  if (!pages) return Unexpected(path, "no numbers");
  static const auto kPageBytes = static_cast<double>(sysconf(_SC_PAGESIZE));
  reading.Add(metrics::kMemoryProcessResident, static_cast<double>(*pages) * kPageBytes);
  return absl::OkStatus();
}

// What reached or left storage, not what was read from the page cache.
absl::Status ProcessSensor::ReadIo(Reading& reading) {
  const std::string path = folder_ + "io";
  STEPWELL_ASSIGN_OR_RETURN(const std::string text, kernel_.Read(path));
  const auto read = NumberBehind(text, "read_bytes");
  const auto written = NumberBehind(text, "write_bytes");
  if (!read || !written) return Unexpected(path, "no numbers");
  const auto read_rate = read_.Next(*read, reading.Now());
  const auto written_rate = written_.Next(*written, reading.Now());
  if (read_rate) reading.Add(metrics::kDiskProcessRead, *read_rate);
  if (written_rate) reading.Add(metrics::kDiskProcessWrite, *written_rate);
  return absl::OkStatus();
}

}  // namespace stepwell::agent
