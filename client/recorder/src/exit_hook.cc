#include "client/recorder/src/exit_hook.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>

namespace stepwell::recorder {
namespace {

constexpr std::chrono::milliseconds kWait{100};

// Who was forked since has another one.
const pid_t kLoadedIn = getpid();

struct Asked {
  std::mutex mutex;
  std::condition_variable told;
  bool is_over = false;
  bool is_called = true;
};

}  // namespace

bool CallAtExit(void (*handler)()) {
  if (getpid() == kLoadedIn) return std::atexit(handler) == 0;
  // The trial's signals are not for this thread.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool is_called = false;
  try {
    const auto asked = std::make_shared<Asked>();
    std::thread([asked, handler] {
      const bool is_listed = std::atexit(handler) == 0;
      const std::lock_guard lock(asked->mutex);
      asked->is_called = is_listed;
      asked->is_over = true;
      asked->told.notify_one();
    }).detach();
    std::unique_lock lock(asked->mutex);
    // Where it does not come back, the exit that would call it does not come to its end either.
    asked->told.wait_for(lock, kWait, [&] { return asked->is_over; });
    is_called = asked->is_called;
  } catch (...) {
    is_called = std::atexit(handler) == 0;  // no thread to be had
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return is_called;
}

}  // namespace stepwell::recorder
