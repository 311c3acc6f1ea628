#include "client/agent/sensors/disk_sensor.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace stepwell::agent {
namespace {

constexpr char kDiskstats[] = "proc/diskstats";
// The unit of /proc/diskstats, whatever the disk's own sector is.
constexpr double kSectorBytes = 512;
constexpr std::size_t kDiskCountMax = 4096;

// "nvme0n1" of "nvme0c3n1", which is one of the paths on which the kernel reaches that multipath
// disk; empty for any other name.
std::string HeadOf(absl::string_view name) {
  const auto take = [&](absl::string_view prefix) {
    absl::string_view number;
    if (absl::ConsumePrefix(&name, prefix)) {
      number = name.substr(0, name.find_first_not_of("0123456789"));
      name.remove_prefix(number.size());
    }
    return number;
  };
  const absl::string_view subsystem = take("nvme");
  const absl::string_view controller = take("c");
  const absl::string_view name_space = take("n");
  if (subsystem.empty() || controller.empty() || name_space.empty() || !name.empty()) return "";
  return absl::StrCat("nvme", subsystem, "n", name_space);
}

bool StartsWithOneOf(std::initializer_list<absl::string_view> prefixes, absl::string_view name) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](absl::string_view prefix) { return absl::StartsWith(name, prefix); });
}

}  // namespace

// Partitions have no entry of their own in /sys/block. Entries without a device (loop, device-mapper,
// RAID, bcache, DRBD, volumes of ZFS, memory) move what disks with one move too, or none; but no
// other disk here counts what another machine serves.
bool DiskSensor::IsWhole(const std::string& name) const {
  if (StartsWithOneOf({"sr", "fd"}, name)) return false;
  const std::string entry = absl::StrCat("sys/block/", absl::StrReplaceAll(name, {{"/", "!"}}));
  if (StartsWithOneOf({"nbd", "rnbd", "etherd/"}, name)) return kernel_.Exists(entry);
  return kernel_.Exists(entry + "/device");
}

void DiskSensor::Read(Reading& reading) {
  const absl::StatusOr<Sum> sum = ReadSum(reading.Now());
  if (!sum.ok()) return reading.Miss("disk", "disk", 3, sum.status());
  if (!sum->any) return;
  reading.Add(metrics::kDiskIops, sum->operations);
  reading.Add(metrics::kDiskThroughputRead, sum->read_bytes);
  reading.Add(metrics::kDiskThroughputWrite, sum->written_bytes);
}

absl::StatusOr<DiskSensor::Sum> DiskSensor::ReadSum(absl::Duration now) {
  STEPWELL_ASSIGN_OR_RETURN(const std::string text, kernel_.Read(kDiskstats));
  Sum sum;
  std::vector<std::pair<const std::string*, Sum>> paths;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> words = Words(line);
    if (words.size() < 10) return Unexpected(kDiskstats, "a line is too short");
    const std::string name(words[2]);
    auto known = disks_.find(name);
    if (known == disks_.end()) {
      if (disks_.size() == kDiskCountMax) continue;
      Disk disk{.head = HeadOf(name)};
      disk.whole = disk.head.empty() && IsWhole(name);
      known = disks_.emplace(name, std::move(disk)).first;
    }
    Disk& disk = known->second;
    if (!disk.whole && disk.head.empty()) continue;
    STEPWELL_ASSIGN_OR_RETURN(const Sum own, ReadLine(words, disk, now));
    if (disk.whole) {
      sum.Add(own);
    } else {
      paths.emplace_back(&disk.head, own);
    }
  }
  // The kernel counts an operation of a multipath disk on the path that it took and on the disk; before
  // Linux 6.2 on the path alone, and the disk stands at zero.
  for (const auto& [head, own] : paths) {
    const auto found = disks_.find(*head);
    if (found == disks_.end() || !found->second.has_counted) sum.Add(own);
  }
  return sum;
}

// Rates of each disk are summed, not rates of the sum: one that is unplugged takes only its own
// counts with it.
absl::StatusOr<DiskSensor::Sum> DiskSensor::ReadLine(const std::vector<absl::string_view>& words,
                                                     Disk& disk, absl::Duration now) {
  const auto reads = Number(words[3]);
  const auto read_sectors = Number(words[5]);
  const auto writes = Number(words[7]);
  const auto written_sectors = Number(words[9]);
  if (!reads || !read_sectors || !writes || !written_sectors) {
    return Unexpected(kDiskstats, "a line has no numbers");
  }
  disk.has_counted = *reads + *writes > 0;
  const auto operations = disk.operations.Next(*reads + *writes, now);
  const auto read = disk.read_sectors.Next(*read_sectors, now);
  const auto written = disk.written_sectors.Next(*written_sectors, now);
  if (!operations || !read || !written) return Sum();
  return Sum{true, *operations, *read * kSectorBytes, *written * kSectorBytes};
}

}  // namespace stepwell::agent
