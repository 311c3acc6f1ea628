// Gate is the one word that every recording call loads first: is recording on, and by which writer?
// It lies on a page that the kernel wipes in a forked child, so that a child never writes into its
// parent's rings, however it was made. Beside it lies what else every such call reads (GateLine).
#pragma once

#include <atomic>
#include <cstdint>

#include "client/recorder/src/hot_clock.h"

namespace stepwell::recorder {

struct Gate {
  static constexpr std::uint32_t kOn = 1;    // scopes and records are wanted
  static constexpr std::uint32_t kOpen = 2;  // a writer is open in this process
  static constexpr int kGenerationShift = 2;

  static constexpr std::uint32_t Word(std::uint32_t generation, bool is_on) {
    return generation << kGenerationShift | kOpen | (is_on ? kOn : 0);
  }
  // After a close: a call that comes now is too late for the writer of this generation.
  static constexpr std::uint32_t ShutWord(std::uint32_t generation) {
    return generation << kGenerationShift;
  }
  static constexpr bool IsShut(std::uint32_t word) { return word != 0 && (word & kOpen) == 0; }
  static constexpr std::uint32_t Generation(std::uint32_t word) { return word >> kGenerationShift; }
};

// What becomes of calls that come once a writer is closed.
enum class LateCalls {
  kCount,     // given up: whoever records did not know
  kPassOver,  // recording was switched off: nobody wanted them
};

using GateWord = std::atomic<std::uint32_t>;
static_assert(sizeof(GateWord) == sizeof(std::uint32_t));

// One line of the cache, alone on its page. All zeros in a forked child: shut, and nothing known.
struct alignas(64) GateLine {
  GateWord word{0};
  std::atomic<std::uint32_t> is_own{0};  // 1 in the process that made it
  HotClock clock;
};
static_assert(sizeof(GateLine) == 64);

}  // namespace stepwell::recorder
