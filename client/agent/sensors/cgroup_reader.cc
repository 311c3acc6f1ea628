#include "client/agent/sensors/cgroup_reader.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/crc32c.h"
#include "base/status_macros.h"

namespace stepwell::agent {
namespace {

constexpr char kMountinfo[] = "proc/self/mountinfo";
// Each minute at the usual interval.
constexpr int kUsesMax = 60;
constexpr int kLimitUsesMax = 10;
// v1 says "no limit" by a huge number, rounded down to pages.
constexpr std::uint64_t kNoLimitV1 = std::uint64_t{1} << 60;

// The process's path in the hierarchy of `controller`, or in v2's where that is empty. Lines are
// "4:memory:/a/b" and "0::/a/b".
std::optional<std::string> PathIn(absl::string_view groups, absl::string_view controller) {
  for (const absl::string_view line : absl::StrSplit(groups, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::vector<absl::string_view> controllers = absl::StrSplit(parts[1], ',');
    const bool is_it = controller.empty() ? parts[0] == "0" && parts[1].empty()
                                          : std::find(controllers.begin(), controllers.end(),
                                                      controller) != controllers.end();
    if (is_it) return std::string(parts[2]);
  }
  return std::nullopt;
}

struct Hierarchy {
  std::string mount;  // without the leading slash
  std::string root;   // which part of the hierarchy is mounted there
};

std::optional<Hierarchy> FindHierarchy(absl::string_view mountinfo, absl::string_view controller) {
  for (const absl::string_view line : absl::StrSplit(mountinfo, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> words = Words(line);
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 10 || words.end() - dash < 3) continue;
    const absl::string_view type = dash[1];
    if (type != (controller.empty() ? "cgroup2" : "cgroup")) continue;
    const std::vector<absl::string_view> options = absl::StrSplit(words.back(), ',');
    if (!controller.empty() &&
        std::find(options.begin(), options.end(), controller) == options.end()) {
      continue;
    }
    return Hierarchy{std::string(absl::StripPrefix(words[4], "/")), std::string(words[3])};
  }
  return std::nullopt;
}

// "/a/b" seen from a mount of "/a" is "/b"; "" is the mount's top. A path that lies outside what is
// mounted shows as its top: a container that sees only its own part.
std::string PathBelow(const std::string& path, const std::string& root) {
  if (path == root) return "";
  const std::string prefix = root == "/" ? "/" : root + "/";
  if (!absl::StartsWith(path, prefix) || absl::StrContains(path, "..")) return "";
  return path.substr(prefix.size() - 1);
}

// Where the last run of so many hexadecimal digits begins: an id as container engines give them. npos
// where there is none.
std::size_t FindId(absl::string_view path) {
  constexpr std::size_t kIdDigitsMin = 32;
  std::size_t found = absl::string_view::npos;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= path.size(); ++i) {
    if (i < path.size() && absl::ascii_isxdigit(static_cast<unsigned char>(path[i]))) continue;
    if (i - begin >= kIdDigitsMin) found = begin;
    begin = i + 1;
  }
  return found;
}

// Two long names stay two.
std::string Shorten(const std::string& name) {
  constexpr std::size_t kNameBytesMax = 64;
  if (name.size() <= kNameBytesMax) return name;
  return absl::StrCat(name.substr(0, kNameBytesMax - 9), "~",
                      absl::Hex(Crc32c(name), absl::kZeroPad8));
}

}  // namespace

std::string ContainerName(absl::string_view groups, absl::string_view hostname) {
  constexpr std::size_t kIdDigitsShown = 12;
  std::string shown;
  for (const char* controller : {"", "memory", "cpuacct", "name=systemd"}) {
    const std::string path = PathIn(groups, controller).value_or("/");
    if (const std::size_t id = FindId(path); id != std::string::npos) {
      const std::size_t below = path.find('/', id);
      shown = path.substr(id, kIdDigitsShown);
      if (below != std::string::npos) shown += path.substr(below);
      return Shorten(shown);
    }
    const bool is_hidden = path.size() <= 1 || absl::StartsWith(path, "/..");
    if (shown.empty() && !is_hidden) shown = path.substr(1);
  }
  return Shorten(shown.empty() ? std::string(hostname) : shown);
}

void CgroupReader::SetProcess(const std::string& process) {
  if (process != process_) known_.clear();
  process_ = process;
}

std::optional<std::uint64_t> CountProcessors(absl::string_view list) {
  std::uint64_t count = 0;
  for (absl::string_view part : absl::StrSplit(absl::StripAsciiWhitespace(list), ',')) {
    const std::vector<absl::string_view> ends = absl::StrSplit(part, '-');
    const std::optional<std::uint64_t> first = Number(ends.front());
    const std::optional<std::uint64_t> last = Number(ends.back());
    if (ends.size() > 2 || !first || !last || *last < *first || *last > 1 << 20) {
      return std::nullopt;
    }
    count += *last - *first + 1;
  }
  return count;
}

absl::StatusOr<CgroupReader::Place> CgroupReader::Find(const std::string& controller,
                                                       const std::string& probe_v2,
                                                       const std::string& probe_v1) {
  auto known = known_.find(controller);
  if (known == known_.end() || known->second.uses_left-- == 0) {
    known_.insert_or_assign(controller, Known{Look(controller, probe_v2, probe_v1), kUsesMax});
    known = known_.find(controller);
  }
  return known->second.place;
}

absl::StatusOr<CgroupReader::Place> CgroupReader::Look(const std::string& controller,
                                                       const std::string& probe_v2,
                                                       const std::string& probe_v1) const {
  STEPWELL_ASSIGN_OR_RETURN(const std::string groups,
                            kernel_.Read(absl::StrCat("proc/", process_, "/cgroup")));
  STEPWELL_ASSIGN_OR_RETURN(const std::string mounts, kernel_.Read(kMountinfo));
  const auto look = [&](Version version, const std::string& probe) -> std::optional<Place> {
    const std::string wanted = version == Version::k1 ? controller : "";
    const std::optional<Hierarchy> hierarchy = FindHierarchy(mounts, wanted);
    const std::optional<std::string> path = PathIn(groups, wanted);
    if (!hierarchy || !path) return std::nullopt;
    // Outside of what the agent sees: another's, whose values lie nowhere here.
    if (process_ != "self" && absl::StartsWith(*path, "/..")) return std::nullopt;
    Place place{version, hierarchy->mount, PathBelow(*path, hierarchy->root), *path == "/"};
    if (!kernel_.Exists(absl::StrCat(place.folder(), "/", probe))) return std::nullopt;
    return place;
  };
  if (const auto place = look(Version::k2, probe_v2)) return *place;
  if (const auto place = look(Version::k1, probe_v1)) return *place;
  // v2 keeps account of time without its controller; at the top of the tree it is the machine's.
  const auto accounted = controller == "cpuacct" ? look(Version::k2, "cpu.stat") : std::nullopt;
  if (accounted && !accounted->is_machine) return *accounted;
  return absl::NotFoundError(absl::StrCat("in no group of the ", controller, " controller"));
}

std::vector<std::string> CgroupReader::Upwards(const Place& place) {
  std::vector<std::string> folders;
  std::string path = place.path;
  while (true) {
    folders.push_back(place.mount + path + "/");
    if (path.empty()) return folders;
    path.resize(path.rfind('/'));
  }
}

std::uint64_t CgroupReader::ProcessorCount() const {
  const absl::StatusOr<std::string> online = kernel_.Read("sys/devices/system/cpu/online");
  const auto count = online.ok() ? CountProcessors(*online) : std::nullopt;
  return std::max<std::uint64_t>(count.value_or(1), 1);
}

absl::StatusOr<CgroupCpu> CgroupReader::ReadCpu() {
  STEPWELL_ASSIGN_OR_RETURN(const Place place, Find("cpuacct", "cpu.max", "cpuacct.usage"));
  if (core_limit_uses_left_-- == 0) {
    core_limit_uses_left_ = kLimitUsesMax;
    core_limit_ = LeastCoreLimit(place);
  }
  // v1's top of the tree, held back by nothing, is the machine.
  if (place.is_machine && place.version == Version::k1 &&
      core_limit_ >= static_cast<double>(ProcessorCount())) {
    return absl::NotFoundError("in no group of the cpu controller");
  }
  STEPWELL_ASSIGN_OR_RETURN(CgroupCpu cpu,
                            place.version == Version::k2 ? ReadCpuV2(place) : ReadCpuV1(place));
  cpu.core_limit = core_limit_;
  return cpu;
}

absl::StatusOr<CgroupCpu> CgroupReader::ReadCpuV2(const Place& place) const {
  const std::string path = place.folder() + "/cpu.stat";
  STEPWELL_ASSIGN_OR_RETURN(const std::string stat, kernel_.Read(path));
  const auto usage_us = NumberBehind(stat, "usage_usec");
  if (!usage_us) return Unexpected(path, "no usage_usec");
  CgroupCpu cpu;
  cpu.usage_us = *usage_us;
  cpu.period_count = NumberBehind(stat, "nr_periods").value_or(0);
  cpu.throttled_count = NumberBehind(stat, "nr_throttled").value_or(0);
  return cpu;
}

// v1 keeps usage, quota and processor set in three controllers, each with a tree of its own.
absl::StatusOr<CgroupCpu> CgroupReader::ReadCpuV1(const Place& usage) {
  CgroupCpu cpu;
  STEPWELL_ASSIGN_OR_RETURN(const std::uint64_t usage_ns,
                            kernel_.ReadNumber(usage.folder() + "/cpuacct.usage"));
  cpu.usage_us = usage_ns / 1000;
  if (const auto quota = Find("cpu", "cpu.max", "cpu.cfs_quota_us"); quota.ok()) {
    const auto stat = kernel_.Read(quota->folder() + "/cpu.stat");
    const std::string text = stat.ok() ? *stat : "";
    cpu.period_count = NumberBehind(text, "nr_periods").value_or(0);
    cpu.throttled_count = NumberBehind(text, "nr_throttled").value_or(0);
  }
  return cpu;
}

double CgroupReader::LeastCoreLimit(const Place& place) {
  if (place.version == Version::k2) return CoreLimit(place);
  auto limit = static_cast<double>(ProcessorCount());
  if (const auto quota = Find("cpu", "cpu.max", "cpu.cfs_quota_us"); quota.ok()) {
    limit = std::min(limit, CoreLimit(*quota));
  }
  if (const auto set = Find("cpuset", "cpuset.cpus.effective", "cpuset.cpus"); set.ok()) {
    limit = std::min(limit, CoreLimit(*set));
  }
  return limit;
}

double CgroupReader::CoreLimit(const Place& place) const {
  auto limit = static_cast<double>(ProcessorCount());
  const auto take = [&](double cores) {
    if (cores > 0) limit = std::min(limit, cores);
  };
  for (const std::string& folder : Upwards(place)) {
    if (const auto max = kernel_.Read(folder + "cpu.max"); max.ok()) {
      const std::vector<absl::string_view> words = Words(*max);
      double quota_us = 0;
      double period_us = 0;
      if (words.size() == 2 && absl::SimpleAtod(words[0], &quota_us) &&
          absl::SimpleAtod(words[1], &period_us) && period_us > 0) {
        take(quota_us / period_us);
      }
    }
    // -1 without a quota: no number for us.
    const auto quota = kernel_.ReadNumber(folder + "cpu.cfs_quota_us");
    const auto period = kernel_.ReadNumber(folder + "cpu.cfs_period_us");
    if (quota.ok() && period.ok() && *period > 0) {
      take(static_cast<double>(*quota) / static_cast<double>(*period));
    }
  }
  for (const char* name : {"/cpuset.cpus.effective", "/cpuset.effective_cpus"}) {
    const auto set = kernel_.Read(place.folder() + name);
    const auto count = set.ok() ? CountProcessors(*set) : std::nullopt;
    if (count) take(static_cast<double>(*count));
  }
  return limit;
}

absl::StatusOr<CgroupMemory> CgroupReader::ReadMemory() {
  STEPWELL_ASSIGN_OR_RETURN(const Place place,
                            Find("memory", "memory.current", "memory.usage_in_bytes"));
  STEPWELL_ASSIGN_OR_RETURN(const CgroupMemory memory, place.version == Version::k2
                                                           ? ReadMemoryV2(place)
                                                           : ReadMemoryV1(place));
  // v1's top of the tree is the machine, unless a container is limited there.
  if (place.is_machine && place.version == Version::k1 && !memory.limit_bytes) {
    return absl::NotFoundError("in no group of the memory controller");
  }
  return memory;
}

absl::StatusOr<CgroupMemory> CgroupReader::ReadMemoryV2(const Place& place) const {
  STEPWELL_ASSIGN_OR_RETURN(const std::uint64_t current,
                            kernel_.ReadNumber(place.folder() + "/memory.current"));
  const std::string path = place.folder() + "/memory.stat";
  STEPWELL_ASSIGN_OR_RETURN(const std::string stat, kernel_.Read(path));
  CgroupMemory memory;
  memory.used_bytes = current - std::min(current, NumberBehind(stat, "inactive_file").value_or(0));
  for (const std::string& folder : Upwards(place)) {
    // "max" without a limit: no number.
    const auto limit = kernel_.ReadNumber(folder + "memory.max");
    if (!limit.ok()) continue;
    memory.limit_bytes = std::min(memory.limit_bytes.value_or(*limit), *limit);
  }
  return memory;
}

absl::StatusOr<CgroupMemory> CgroupReader::ReadMemoryV1(const Place& place) const {
  STEPWELL_ASSIGN_OR_RETURN(const std::uint64_t usage,
                            kernel_.ReadNumber(place.folder() + "/memory.usage_in_bytes"));
  const std::string path = place.folder() + "/memory.stat";
  STEPWELL_ASSIGN_OR_RETURN(const std::string stat, kernel_.Read(path));
  CgroupMemory memory;
  memory.used_bytes =
      usage - std::min(usage, NumberBehind(stat, "total_inactive_file").value_or(0));
  // The kernel has looked up the tree already.
  const auto limit = NumberBehind(stat, "hierarchical_memory_limit");
  if (limit && *limit < kNoLimitV1) memory.limit_bytes = *limit;
  return memory;
}

}  // namespace stepwell::agent
