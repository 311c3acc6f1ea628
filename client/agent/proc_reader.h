// ProcReader: this machine's counters as the kernel shows them, parsed and checked. Each reading
// stands alone: one that fails says nothing about the others. Thread-compatible. docs/metrics.md
// names source and formula of each metric that is made of them.
//
//   const ProcReader reader("/");            // a fixture's directory in tests
//   absl::StatusOr<CpuTimes> cpu = reader.ReadCpu();
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace stepwell::agent {

// Since boot, in clock ticks, over all processors.
struct CpuTimes {
  std::uint64_t busy = 0;
  std::uint64_t total = 0;
};

// Since boot, over whole disks.
struct DiskCounters {
  std::uint64_t operations = 0;
  std::uint64_t read_bytes = 0;
  std::uint64_t written_bytes = 0;
};

// Since boot, over all interfaces but lo.
struct NetworkCounters {
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_bytes = 0;
};

struct MountUse {
  std::string mount;
  double used_percent = 0;
};

class ProcReader {
 public:
  // Below `root` lie proc and sys.
  explicit ProcReader(std::string root) : root_(std::move(root)) {}

  // All: kNotFound where the kernel does not show it, kPermissionDenied where it may not be read,
  // kDataLoss where the text is not as expected.
  absl::StatusOr<CpuTimes> ReadCpu() const;
  // Bytes that can be had without swapping.
  absl::StatusOr<std::uint64_t> ReadMemoryAvailable() const;
  absl::StatusOr<DiskCounters> ReadDisks() const;
  absl::StatusOr<NetworkCounters> ReadNetwork() const;
  // File systems on local disks, and the root's; at most 64, each once, sorted. Blocks as a disk
  // does, never on a file server.
  absl::StatusOr<std::vector<MountUse>> ReadMounts() const;

 private:
  absl::StatusOr<std::string> Read(const std::string& path) const;
  bool IsWholeDisk(const std::string& name) const;

  const std::string root_;
};

}  // namespace stepwell::agent
