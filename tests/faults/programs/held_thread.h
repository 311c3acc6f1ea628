// A thread that the kernel holds to what a training step may do: sleep until a moment, write to one
// file. Any other system call ends the process with exit code 90 and its number on stderr.
//
//   HoldThisThread(ledger);      // for the rest of the thread's life
//   SleepUntil(due);
#pragma once

#include <chrono>

namespace stepwell::faults {

inline constexpr int kExitHeld = 90;

// By the one call that a held thread may sleep with.
void SleepUntil(std::chrono::steady_clock::time_point due);

// Ends the process with 77 where the kernel cannot. The memory that this thread's strings take from now
// on (some MiB) is there already. REQUIRES: not the main thread.
void HoldThisThread(int writable);

}  // namespace stepwell::faults
