#include "tests/faults/programs/held_thread.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

namespace stepwell::faults {
namespace {

constexpr int kExitSkipped = 77;
constexpr std::size_t kOwnBytes = 8 << 20;

// Of the one thread that is held; 0 = none is.
std::atomic<int> g_held{0};
// Counted from when it is held.
std::atomic<std::int64_t> g_sleep_count{0};
std::int64_t g_switches_before = 0;

std::int64_t VoluntarySwitches(int thread) {
  std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/status");
  std::string key;
  while (status >> key) {
    std::int64_t count = 0;
    if (key == "voluntary_ctxt_switches:" && status >> count) return count;
  }
  return 0;
}

// What this thread's own strings need is taken from the kernel now, and never given back.
void TakeMemory() {
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  void* taken = std::malloc(kOwnBytes);
  asm volatile("" : : "r"(taken) : "memory");
  std::free(taken);
}

// Only write and exit_group are left to it, which the filter lets pass.
void TellCall(int, siginfo_t* info, void*) {
  char text[] = "trainer: system call     in a step\n";
  constexpr int kDigitLast = 23;
  for (int call = info->si_syscall, i = kDigitLast; i > kDigitLast - 3; --i, call /= 10) {
    text[i] = static_cast<char>('0' + call % 10);
  }
  if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0) _exit(kExitHeld + 1);
  _exit(kExitHeld);
}

bool Install(int writable) {
  const auto low_word = [](std::size_t offset) -> sock_filter {
    return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
  };
  const auto argument = [&](std::size_t index) {
    return low_word(offsetof(seccomp_data, args) + index * sizeof(std::uint64_t));
  };
  const auto if_call = [](std::uint32_t call, std::uint8_t to) -> sock_filter {
    return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, to, 0);
  };
  sock_filter program[] = {
      low_word(offsetof(seccomp_data, nr)),
      if_call(SYS_rt_sigreturn, 9),
      if_call(SYS_exit_group, 8),
      if_call(SYS_clock_gettime, 7),  // where the machine's clock is one
      if_call(SYS_clock_nanosleep, 4),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 0, 6),
      argument(0),
      if_call(static_cast<std::uint32_t>(writable), 3),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, STDERR_FILENO, 2, 3),
      argument(1),  // TIMER_ABSTIME: ours
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TIMER_ABSTIME, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
  };
  const sock_fprog filter{sizeof(program) / sizeof(program[0]), program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

}  // namespace

void SleepUntil(std::chrono::steady_clock::time_point due) {
  const auto since = due.time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since);
  const timespec at{.tv_sec = seconds.count(), .tv_nsec = (since - seconds).count()};
  // One that is late does not sleep.
  while (std::chrono::steady_clock::now() < due) {
    g_sleep_count.fetch_add(1, std::memory_order_relaxed);
    if (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) != EINTR) return;
  }
}

HeldWaits ReadHeldWaits() {
  const int held = g_held;
  if (held == 0) return {};
  // In this order: a sleep that begins meanwhile is no wait.
  const std::int64_t switches = VoluntarySwitches(held) - g_switches_before;
  return {switches, g_sleep_count};
}

void HoldThisThread(int writable) {
  TakeMemory();
  struct sigaction action = {};
  action.sa_sigaction = &TellCall;
  action.sa_flags = SA_SIGINFO;
  const int thread = static_cast<int>(syscall(SYS_gettid));
  g_switches_before = VoluntarySwitches(thread);
  g_sleep_count = 0;
  if (sigaction(SIGSYS, &action, nullptr) != 0 || !Install(writable)) std::_Exit(kExitSkipped);
  g_held = thread;
}

}  // namespace stepwell::faults
