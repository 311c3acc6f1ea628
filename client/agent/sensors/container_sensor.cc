#include "client/agent/sensors/container_sensor.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace stepwell::agent {
namespace {

// Each minute at the usual interval.
constexpr int kUsesMax = 60;

using Labels = std::map<std::string, std::string>;

void ReadCpu(ContainerGroups::Container& container, const Labels& labels, const std::string& sensor,
             Reading& reading) {
  const absl::StatusOr<CgroupCpu> cpu = container.reader.ReadCpu();
  if (absl::IsNotFound(cpu.status())) return;
  if (!cpu.ok()) return reading.Miss("cpu", sensor, 2, cpu.status());
  reading.Add(metrics::kCpuContainerLimit, labels, cpu->core_limit);
  const absl::Duration now = reading.Now();
  if (const auto us_per_second = container.usage_us.Next(cpu->usage_us, now); us_per_second) {
    reading.Add(metrics::kCpuUtilContainer, labels, 100 * *us_per_second / 1e6 / cpu->core_limit);
  }
  const auto periods = container.periods.Next(cpu->period_count, now);
  const auto throttled = container.throttled.Next(cpu->throttled_count, now);
  // Without a limit no period passes, and nothing is throttled or not.
  if (periods && throttled && *periods > 0) {
    reading.Add(metrics::kCpuContainerThrottled, labels, 100 * *throttled / *periods);
  }
}

void ReadMemory(ContainerGroups::Container& container, const Labels& labels,
                const std::string& sensor, Reading& reading) {
  const absl::StatusOr<CgroupMemory> memory = container.reader.ReadMemory();
  if (absl::IsNotFound(memory.status())) return;
  if (!memory.ok()) return reading.Miss("memory", sensor, 1, memory.status());
  reading.Add(metrics::kMemoryContainerUsed, labels, static_cast<double>(memory->used_bytes));
  if (memory->limit_bytes) {
    reading.Add(metrics::kMemoryContainerLimit, labels, static_cast<double>(*memory->limit_bytes));
  }
}

}  // namespace

std::vector<std::string> ContainerGroups::Processes() const {
  if (options_.processes == nullptr) return {"self"};
  std::vector<std::string> names;
  for (const pid_t pid : options_.processes->pids()) names.push_back(absl::StrCat(pid));
  return names;
}

const std::string& ContainerGroups::ContainerOf(const std::string& process) {
  Known& known = known_[process];
  if (known.uses_left-- > 0) return known.container;
  known.uses_left = kUsesMax;
  known.container.clear();
  const auto groups = kernel_.Read(absl::StrCat("proc/", process, "/cgroup"));
  if (!groups.ok()) return known.container;
  const auto hostname = kernel_.Read("proc/sys/kernel/hostname");
  known.container = ContainerName(*groups, absl::StripAsciiWhitespace(hostname.value_or("self")));
  return known.container;
}

std::map<std::string, ContainerGroups::Container*> ContainerGroups::Find(const SensorFace& face,
                                                                         Reading& reading) {
  const absl::Duration now = reading.Now();
  std::set<std::string> not_held;
  std::map<std::string, Container*> found;
  const std::vector<std::string> processes = Processes();
  for (const std::string& process : processes) {
    const std::string& name = ContainerOf(process);
    if (name.empty() || found.contains(name) || found.size() == kCountMax) continue;
    if (options_.claims != nullptr && !options_.claims->Hold(name, now)) {
      if (not_held.size() < kCountMax) not_held.insert(name);
      continue;
    }
    Container& container = containers_.try_emplace(name, kernel_).first->second;
    container.reader.SetProcess(process);
    found[name] = &container;
  }
  std::erase_if(known_, [&](const auto& entry) {
    return std::find(processes.begin(), processes.end(), entry.first) == processes.end();
  });
  if (options_.claims != nullptr) options_.claims->GiveBack(now);
  for (const std::string& name : not_held) {
    reading.Miss({face.metric_group, AbsenceKind::kUnsupported,
                  absl::StrCat(face.name, " of another: ", name), 0,
                  absl::StrCat("container ", name, ": another agent measures it")});
  }
  // One that comes back begins its rates anew.
  std::erase_if(containers_, [&](const auto& entry) { return !found.contains(entry.first); });
  return found;
}

void ContainerGroups::Forget() {
  for (auto& [name, container] : containers_) {
    container.usage_us.Forget();
    container.periods.Forget();
    container.throttled.Forget();
  }
}

void ContainerCpuSensor::Read(Reading& reading) {
  for (const auto& [name, container] : groups_.Find(face(), reading)) {
    ReadCpu(*container, {{"container", name}}, face().name, reading);
  }
}

void ContainerMemorySensor::Read(Reading& reading) {
  for (const auto& [name, container] : groups_.Find(face(), reading)) {
    ReadMemory(*container, {{"container", name}}, face().name, reading);
  }
}

}  // namespace stepwell::agent
