// RoomPace: memory that was too little is looked for again after a pause, which grows while it stays so,
// from 0.25 to 2 s: a look reads several files of each cgroup around, and each ring that is wanted asks.
// Times are CLOCK_MONOTONIC ns. Pure. Thread-compatible.
//
//   if (pace.IsKnownTooLittle(bytes, now)) return nullptr;
//   const std::uint64_t room = MemoryRoom().Bytes();
//   pace.Saw(room, bytes, now);
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "client/recorder/src/memory_room.h"

namespace stepwell::recorder {

class RoomPace {
 public:
  static constexpr std::uint64_t kPauseFirstNs = 250'000'000;
  static constexpr std::uint64_t kPauseMaxNs = 2'000'000'000;

  // A smaller ring than the one that was refused may have found its room.
  bool IsKnownTooLittle(std::size_t bytes, std::uint64_t now_ns) const {
    return pause_ns_ > 0 && now_ns - seen_ns_ < pause_ns_ && !MemoryRoom::IsFor(room_, bytes);
  }
  // A look for `bytes` found `room`.
  void Saw(std::uint64_t room, std::size_t bytes, std::uint64_t now_ns) {
    const bool is_enough = MemoryRoom::IsFor(room, bytes);
    pause_ns_ = is_enough ? 0 : std::clamp(pause_ns_ * 2, kPauseFirstNs, kPauseMaxNs);
    room_ = room;
    seen_ns_ = now_ns;
  }

 private:
  std::uint64_t room_ = 0;
  std::uint64_t seen_ns_ = 0;
  std::uint64_t pause_ns_ = 0;  // 0 = what was looked for last was there
};

}  // namespace stepwell::recorder
