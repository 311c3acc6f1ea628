// MemoryRoom: what the memory cgroups of this process leave it. Rings count to them, and one that finds
// no room there brings the kernel's killer upon the trial, no error.
//
//   if (!MemoryRoom().HasFor(bytes)) ...  // no ring, then
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace stepwell::recorder {

class MemoryRoom {
 public:
  static constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

  MemoryRoom() = default;
  // Other files than the kernel's: of tests.
  MemoryRoom(std::string cgroups_of_process, std::string mount)
      : cgroups_of_process_(std::move(cgroups_of_process)), mount_(std::move(mount)) {}

  // Of the tightest limit, what neither memory nor tmpfs has taken: what the kernel caches of files it
  // gives back. No limit, or none that can be read = kUnlimited. Some system calls.
  std::uint64_t Bytes() const;
  // Four times `bytes` are left: the trial wants memory, too.
  bool HasFor(std::size_t bytes) const { return IsFor(Bytes(), bytes); }
  static bool IsFor(std::uint64_t room, std::size_t bytes) { return room / 4 >= bytes; }

 private:
  const std::string cgroups_of_process_ = "/proc/self/cgroup";
  const std::string mount_ = "/sys/fs/cgroup";
};

}  // namespace stepwell::recorder
