// Waits of absl::Mutex, CondVar and Notification that no setting of the wall clock stretches. Debian 12's
// abseil (20220623) waits until a time of the wall clock: where that is set back by an hour while a thread
// waits for a second, the thread waits an hour longer. Here they run by CLOCK_MONOTONIC, through the hook
// that abseil leaves open for it (absl/synchronization/internal/per_thread_sem.h).
//
//   int main() {
//     stepwell::UseMonotonicWaits();
#pragma once

namespace stepwell {

// Of the whole program, libraries that use abseil included, from its start on: whoever names this
// function links the hook. A program that does not has abseil's own waits.
void UseMonotonicWaits();

}  // namespace stepwell
