#include "client/recorder/src/thread_barrier.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

namespace stepwell::recorder {
namespace {

constexpr std::chrono::milliseconds kStoreDelayMax{10};

bool Membarrier(int command) {
  // The trial's errno is not ours to change.
  const int before = errno;
  const bool done = syscall(SYS_membarrier, command, 0, 0) == 0;
  errno = before;
  return done;
}

}  // namespace

void PrepareThreadBarrier() { (void)Membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED); }

void OrderAllThreads() {
  if (Membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
  std::this_thread::sleep_for(kStoreDelayMax);
}

}  // namespace stepwell::recorder
