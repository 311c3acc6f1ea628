#include "client/agent/sensors/mount_sensor.h"

#include <sys/statvfs.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "client/agent/sensors/mount_table.h"

namespace stepwell::agent {
namespace {

constexpr char kMountinfo[] = "proc/self/mountinfo";

absl::StatusOr<std::vector<Mount>> ReadMounts(const KernelText& kernel) {
  const absl::StatusOr<std::string> text = kernel.Read(kMountinfo);
  if (!text.ok()) return text.status();
  return ParseMounts(*text);
}

// As df counts: what only root may use is neither used nor free. None of a file system without
// blocks.
absl::StatusOr<std::optional<double>> UsedPercent(const KernelText& kernel,
                                                  const std::string& path) {
  struct statvfs found {};
  if (statvfs(kernel.PathOf(path.substr(1)).c_str(), &found) != 0) {
    const int error = errno;
    if (error == EACCES) return absl::PermissionDeniedError(std::strerror(error));
    return absl::UnavailableError(std::strerror(error));
  }
  const auto used = static_cast<double>(found.f_blocks - found.f_bfree);
  const double usable = used + static_cast<double>(found.f_bavail);
  if (usable <= 0) return std::optional<double>();
  return std::optional<double>(100 * used / usable);
}

void AddMount(const KernelText& kernel, const std::string& path, Reading& reading) {
  const absl::StatusOr<std::optional<double>> used = UsedPercent(kernel, path);
  if (!used.ok()) return reading.Miss("disk", path, 1, used.status());
  if (*used) reading.Add(metrics::kDiskUtil, {{"mount", path}}, **used);
}

}  // namespace

void LocalMountSensor::Read(Reading& reading) {
  const absl::StatusOr<std::vector<Mount>> mounts = ReadMounts(kernel_);
  if (!mounts.ok()) return reading.Miss("disk", "mounts", sample_count_, mounts.status());
  sample_count_ = 0;
  for (const Mount& mount : *mounts) {
    if (mount.where != Mount::Where::kLocal) continue;
    AddMount(kernel_, mount.path, reading);
    ++sample_count_;
  }
}

void ServerMountSensor::Read(Reading& reading) {
  // One that was unmounted would show the file system below it.
  const absl::StatusOr<std::vector<Mount>> mounts = ReadMounts(kernel_);
  if (!mounts.ok()) return reading.Miss("disk", path_, 1, mounts.status());
  for (const Mount& mount : *mounts) {
    if (mount.path == path_ && mount.where == Mount::Where::kServer) {
      return AddMount(kernel_, path_, reading);
    }
  }
}

Findings MountFinder::Find() {
  Findings findings;
  const absl::StatusOr<std::vector<Mount>> mounts = ReadMounts(kernel_);
  if (!mounts.ok()) return findings;  // LocalMountSensor tells of it
  for (const Mount& mount : *mounts) {
    if (mount.where != Mount::Where::kServer || known_.size() == kServerCountMax) continue;
    if (!known_.insert(mount.path).second) continue;
    findings.sensors.push_back(std::make_unique<ServerMountSensor>(mount.path, kernel_));
  }
  return findings;
}

}  // namespace stepwell::agent
