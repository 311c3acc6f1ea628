// CgroupReader: what the kernel accounts to, and allows, the container (or service, or Slurm step)
// that a process is in, the agent itself or another: cgroup v2, v1, or some controllers of each
// (hybrid). It finds where the controllers are mounted and which part of each tree is the process's.
// Confined to one thread.
//
//   CgroupReader reader(KernelText("/"));
//   absl::StatusOr<CgroupCpu> cpu = reader.ReadCpu();
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/agent/sensors/kernel_text.h"

namespace stepwell::agent {

struct CgroupCpu {
  // Processor time used, since the group began.
  std::uint64_t usage_us = 0;
  // Of the limit's periods, in how many it was held back; zeros without a limit.
  std::uint64_t period_count = 0;
  std::uint64_t throttled_count = 0;
  // Processors that may be used at once: the least of quotas up the tree, and the set it may run on.
  double core_limit = 0;
};

struct CgroupMemory {
  // Without pages of files that nobody uses: what counts against the limit before anything is
  // reclaimed.
  std::uint64_t used_bytes = 0;
  // The least of the limits up the tree; none = the machine's memory.
  std::optional<std::uint64_t> limit_bytes;
};

class CgroupReader {
 public:
  // `process` is the name of its directory in proc.
  explicit CgroupReader(KernelText kernel, std::string process = "self")
      : kernel_(std::move(kernel)), process_(std::move(process)) {}

  // Another one of the same container.
  void SetProcess(const std::string& process);
  // kNotFound: the process is in no group of its own, the machine's values say it all.
  absl::StatusOr<CgroupCpu> ReadCpu();
  absl::StatusOr<CgroupMemory> ReadMemory();

 private:
  enum class Version { k1, k2 };
  // Where a controller shows the agent's group.
  struct Place {
    Version version = Version::k2;
    std::string mount;  // "sys/fs/cgroup/memory"
    std::string path;   // "" is the top of what is mounted, else "/a/b"
    bool is_machine = false;
    std::string folder() const { return mount + path; }
  };
  // Where a controller is found hardly ever changes, and looking for it costs more than reading.
  struct Known {
    absl::StatusOr<Place> place;
    int uses_left = 0;
  };
  absl::StatusOr<Place> Find(const std::string& controller, const std::string& probe_v2,
                             const std::string& probe_v1);
  absl::StatusOr<Place> Look(const std::string& controller, const std::string& probe_v2,
                             const std::string& probe_v1) const;
  // Of the group and of each above it, as far as the mount shows them.
  static std::vector<std::string> Upwards(const Place& place);
  std::uint64_t ProcessorCount() const;
  absl::StatusOr<CgroupCpu> ReadCpuV2(const Place& place) const;
  absl::StatusOr<CgroupCpu> ReadCpuV1(const Place& usage);
  double LeastCoreLimit(const Place& place);
  double CoreLimit(const Place& place) const;
  absl::StatusOr<CgroupMemory> ReadMemoryV2(const Place& place) const;
  absl::StatusOr<CgroupMemory> ReadMemoryV1(const Place& place) const;

  const KernelText kernel_;
  std::string process_;
  std::map<std::string, Known> known_;  // by controller
  // Limits hardly ever change, and up the tree they are many files.
  double core_limit_ = 0;
  int core_limit_uses_left_ = 0;
};

// What tells a container of a machine from another, and stays the same while it lives: of `groups`, the
// text of a proc/PID/cgroup, the 12 first digits of a container's id, and what lies below it, else the
// path; where the path is hidden (a cgroup namespace), `hostname`. At most 64 bytes.
std::string ContainerName(absl::string_view groups, absl::string_view hostname);

// How many processors "0-3,8" names; none where it is no such list.
std::optional<std::uint64_t> CountProcessors(absl::string_view list);

}  // namespace stepwell::agent
