#include "client/agent/proc_reader.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "client/agent/file_descriptor.h"

namespace stepwell::agent {
namespace {

// A machine of 4096 processors has a /proc/stat of some 300 KiB.
constexpr std::size_t kProcBytesMax = 4 << 20;
// The unit of /proc/diskstats, whatever the disk's own sector is.
constexpr std::uint64_t kSectorBytes = 512;
constexpr std::size_t kMountCountMax = 64;

absl::Status Unexpected(absl::string_view path, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(path, ": ", what));
}

std::vector<absl::string_view> Words(absl::string_view line) {
  return absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
}

std::optional<std::uint64_t> Number(absl::string_view text) {
  std::uint64_t number = 0;
  if (!absl::SimpleAtoi(text, &number)) return std::nullopt;
  return number;
}

// "\040" and the like in mountinfo.
std::string Unescape(absl::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](std::size_t at) { return text[at] >= '0' && text[at] <= '7'; };
    if (text[i] == '\\' && i + 3 < text.size() && digit(i + 1) && digit(i + 2) && digit(i + 3)) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                 (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// Images that are always full say nothing.
bool IsImage(absl::string_view type) {
  return type == "squashfs" || type == "iso9660" || type == "udf" || type == "erofs";
}

}  // namespace

absl::StatusOr<std::string> ProcReader::Read(const std::string& path) const {
  return ReadSmallFileAt(AT_FDCWD, absl::StrCat(root_, "/", path), kProcBytesMax);
}

absl::StatusOr<CpuTimes> ProcReader::ReadCpu() const {
  STEPWELL_ASSIGN_OR_RETURN(const std::string text, Read("proc/stat"));
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::StartsWith(line, "cpu ")) continue;
    const std::vector<absl::string_view> words = Words(line);
    // user nice system idle iowait irq softirq steal; guest time is part of user already.
    if (words.size() < 9) return Unexpected("/proc/stat", "the cpu line is too short");
    CpuTimes times;
    for (std::size_t i = 1; i <= 8; ++i) {
      const std::optional<std::uint64_t> ticks = Number(words[i]);
      if (!ticks) return Unexpected("/proc/stat", "the cpu line has no numbers");
      times.total += *ticks;
      if (i != 4 && i != 5) times.busy += *ticks;
    }
    return times;
  }
  return Unexpected("/proc/stat", "no cpu line");
}

absl::StatusOr<std::uint64_t> ProcReader::ReadMemoryAvailable() const {
  STEPWELL_ASSIGN_OR_RETURN(const std::string text, Read("proc/meminfo"));
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::StartsWith(line, "MemAvailable:")) continue;
    const std::vector<absl::string_view> words = Words(line);
    const std::optional<std::uint64_t> kib = words.size() >= 2 ? Number(words[1]) : std::nullopt;
    if (!kib) return Unexpected("/proc/meminfo", "MemAvailable has no number");
    return *kib * 1024;
  }
  return Unexpected("/proc/meminfo", "no MemAvailable");
}

// Partitions have no entry of their own in /sys/block. Loop devices, device-mapper, RAID and
// memory disks do, but what they move is moved by other disks too, or by none.
bool ProcReader::IsWholeDisk(const std::string& name) const {
  static constexpr std::array<absl::string_view, 6> kNoDisks = {"loop", "dm-",  "md",
                                                                "ram",  "zram", "sr"};
  for (const absl::string_view prefix : kNoDisks) {
    if (absl::StartsWith(name, prefix)) return false;
  }
  std::string entry = name;
  std::replace(entry.begin(), entry.end(), '/', '!');
  return access(absl::StrCat(root_, "/sys/block/", entry).c_str(), F_OK) == 0;
}

absl::StatusOr<DiskCounters> ProcReader::ReadDisks() const {
  STEPWELL_ASSIGN_OR_RETURN(const std::string text, Read("proc/diskstats"));
  DiskCounters sum;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> words = Words(line);
    if (words.size() < 10) return Unexpected("/proc/diskstats", "a line is too short");
    if (!IsWholeDisk(std::string(words[2]))) continue;
    const auto reads = Number(words[3]);
    const auto read_sectors = Number(words[5]);
    const auto writes = Number(words[7]);
    const auto written_sectors = Number(words[9]);
    if (!reads || !read_sectors || !writes || !written_sectors) {
      return Unexpected("/proc/diskstats", "a line has no numbers");
    }
    sum.operations += *reads + *writes;
    sum.read_bytes += *read_sectors * kSectorBytes;
    sum.written_bytes += *written_sectors * kSectorBytes;
  }
  return sum;
}

absl::StatusOr<NetworkCounters> ProcReader::ReadNetwork() const {
  STEPWELL_ASSIGN_OR_RETURN(const std::string text, Read("proc/net/dev"));
  NetworkCounters sum;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::size_t colon = line.find(':');
    if (colon == absl::string_view::npos) continue;  // the two heading lines
    const std::vector<absl::string_view> name = Words(line.substr(0, colon));
    const std::vector<absl::string_view> words = Words(line.substr(colon + 1));
    if (name.size() != 1 || words.size() < 9) {
      return Unexpected("/proc/net/dev", "a line is too short");
    }
    if (name[0] == "lo") continue;
    const auto received = Number(words[0]);
    const auto sent = Number(words[8]);
    if (!received || !sent) return Unexpected("/proc/net/dev", "a line has no numbers");
    sum.received_bytes += *received;
    sum.sent_bytes += *sent;
  }
  return sum;
}

absl::StatusOr<std::vector<MountUse>> ProcReader::ReadMounts() const {
  STEPWELL_ASSIGN_OR_RETURN(const std::string text, Read("proc/self/mountinfo"));
  // What is mounted over another thing hides it: the last line of a mount point is what lies there.
  std::map<std::string, std::string> device_by_mount;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> words = Words(line);
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 10 || words.end() - dash < 3) {
      return Unexpected("/proc/self/mountinfo", "a line is too short");
    }
    const std::string mount = Unescape(words[4]);
    const bool on_disk = absl::StartsWith(dash[2], "/dev/") && !IsImage(dash[1]) &&
                         !absl::StartsWith(dash[1], "fuse");
    device_by_mount[mount] = on_disk || mount == "/" ? std::string(words[2]) : "";
  }
  // One per device: its shortest mount. A bind mount shows the same disk again.
  std::map<std::string, std::string> mount_by_device;
  for (const auto& [mount, device] : device_by_mount) {
    if (device.empty()) continue;
    std::string& shortest = mount_by_device[device];
    if (shortest.empty() || mount.size() < shortest.size()) shortest = mount;
  }
  std::vector<MountUse> uses;
  for (const auto& [device, mount] : mount_by_device) {
    struct statvfs found {};
    if (statvfs(absl::StrCat(root_, mount).c_str(), &found) != 0) continue;
    // As df counts: what only root may use is neither used nor free.
    const auto used = static_cast<double>(found.f_blocks - found.f_bfree);
    const double usable = used + static_cast<double>(found.f_bavail);
    if (usable > 0) uses.push_back({mount, 100 * used / usable});
  }
  std::sort(uses.begin(), uses.end(),
            [](const MountUse& a, const MountUse& b) { return a.mount < b.mount; });
  if (uses.size() > kMountCountMax) uses.resize(kMountCountMax);
  return uses;
}

}  // namespace stepwell::agent
