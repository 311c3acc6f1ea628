// A munmap that can be held, for who asks whether others go on meanwhile; by LD_PRELOAD.
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// 0 = as ever; 1 = the next one of kHeldBytes and more is held; 2 = it is; 3 = it may go on; 4 = it did in time, 5 = not.
int held_munmap_state;

enum { kHeldBytes = 4096, kHoldSeconds = 20 };

static long NowSeconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (long)now.tv_sec;
}

int munmap(void* address, size_t bytes) {
  int armed = 1;
  if (bytes >= kHeldBytes && __atomic_compare_exchange_n(&held_munmap_state, &armed, 2, 0,
                                                         __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    const long until = NowSeconds() + kHoldSeconds;
    while (__atomic_load_n(&held_munmap_state, __ATOMIC_SEQ_CST) == 2 && NowSeconds() < until)
      usleep(1000);
    __atomic_store_n(&held_munmap_state,
                     __atomic_load_n(&held_munmap_state, __ATOMIC_SEQ_CST) == 3 ? 4 : 5,
                     __ATOMIC_SEQ_CST);
  }
  return (int)syscall(SYS_munmap, address, bytes);
}
