// RoomTurn: while a process has it, no other one of the same spool root looks for memory and takes it.
// Ranks of one machine share a cgroup and fill up their rings at about the same moment: each of them would
// find the room that all of them then take, and the kernel would kill one. Confined to its thread.
//
//   const RoomTurn turn(format_directory);
//   if (MemoryRoom().HasFor(bytes)) ... take them ...
#pragma once

#include <cstdint>
#include <string>

#include "client/recorder/src/unique_fd.h"

namespace stepwell::recorder {

class RoomTurn {
 public:
  // Some hundred others may be before it, of a few milliseconds each. Who had it and was stopped, or left
  // it to a child, holds up nobody for longer.
  static constexpr std::uint64_t kWaitMaxNs = 500'000'000;

  // Of the directory at `path`. Waits, and goes on without it where it does not come.
  explicit RoomTurn(const std::string& path, std::uint64_t wait_max_ns = kWaitMaxNs);
  ~RoomTurn();
  RoomTurn(const RoomTurn&) = delete;
  RoomTurn& operator=(const RoomTurn&) = delete;

  bool is_taken() const { return is_taken_; }

 private:
  const UniqueFd directory_;
  bool is_taken_ = false;
};

}  // namespace stepwell::recorder
