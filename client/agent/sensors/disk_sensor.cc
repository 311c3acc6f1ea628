#include "client/agent/sensors/disk_sensor.h"

#include <algorithm>
#include <array>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace stepwell::agent {
namespace {

constexpr char kDiskstats[] = "proc/diskstats";
// The unit of /proc/diskstats, whatever the disk's own sector is.
constexpr double kSectorBytes = 512;
constexpr std::size_t kDiskCountMax = 4096;

}  // namespace

// Partitions have no entry of their own in /sys/block. Loop devices, device-mapper, RAID and
// memory disks do, but what they move is moved by other disks too, or by none.
bool DiskSensor::IsWhole(const std::string& name) const {
  static constexpr std::array<absl::string_view, 7> kNoDisks = {"loop", "dm-", "md", "ram",
                                                                "zram", "sr",  "fd"};
  for (const absl::string_view prefix : kNoDisks) {
    if (absl::StartsWith(name, prefix)) return false;
  }
  std::string entry = name;
  std::replace(entry.begin(), entry.end(), '/', '!');
  return kernel_.Exists(absl::StrCat("sys/block/", entry));
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
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> words = Words(line);
    if (words.size() < 10) return Unexpected(kDiskstats, "a line is too short");
    const std::string name(words[2]);
    auto known = disks_.find(name);
    if (known == disks_.end()) {
      if (disks_.size() == kDiskCountMax) continue;
      known = disks_.emplace(name, Disk{.whole = IsWhole(name)}).first;
    }
    if (known->second.whole) {
      STEPWELL_RETURN_IF_ERROR(AddLine(words, known->second, now, sum));
    }
  }
  return sum;
}

// Rates of each disk are summed, not rates of the sum: one that is unplugged takes only its own
// counts with it.
absl::Status DiskSensor::AddLine(const std::vector<absl::string_view>& words, Disk& disk,
                                 absl::Duration now, Sum& sum) const {
  const auto reads = Number(words[3]);
  const auto read_sectors = Number(words[5]);
  const auto writes = Number(words[7]);
  const auto written_sectors = Number(words[9]);
  if (!reads || !read_sectors || !writes || !written_sectors) {
    return Unexpected(kDiskstats, "a line has no numbers");
  }
  const auto operations = disk.operations.Next(*reads + *writes, now);
  const auto read = disk.read_sectors.Next(*read_sectors, now);
  const auto written = disk.written_sectors.Next(*written_sectors, now);
  if (!operations || !read || !written) return absl::OkStatus();
  sum.any = true;
  sum.operations += *operations;
  sum.read_bytes += *read * kSectorBytes;
  sum.written_bytes += *written * kSectorBytes;
  return absl::OkStatus();
}

}  // namespace stepwell::agent
