// A thread that the kernel holds to what a training step may do: sleep until a moment, write to one
// file. Any other system call ends the process with exit code 90 and its number on stderr.
//
//   HoldThisThread(ledger);      // for the rest of the thread's life
//   SleepUntil(due);
#pragma once

#include <chrono>
#include <cstdint>

namespace stepwell::faults {

inline constexpr int kExitHeld = 90;

// By the one call that a held thread may sleep with.
void SleepUntil(std::chrono::steady_clock::time_point due);

// Ends the process with 77 where the kernel cannot. The memory that this thread's strings take from now
// on (some MiB) is there already. REQUIRES: not the main thread.
void HoldThisThread(int writable);

// How often the held thread gave up its processor since it is held, and how often of these to sleep: what it waits for without a
// system call (a page that is being written, a lock of the kernel's) is the rest. From any other thread. Zeros where
// none is held.
struct HeldWaits {
  std::int64_t switch_count = 0;
  std::int64_t sleep_count = 0;
};
HeldWaits ReadHeldWaits();

}  // namespace stepwell::faults
