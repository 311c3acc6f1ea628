#include "client/recorder/src/room_turn.h"

#include <fcntl.h>
#include <sys/file.h>
#include <time.h>

#include <cerrno>

#include "client/recorder/src/monotonic.h"

namespace stepwell::recorder {

// By flock: it needs no file of its own and no right to write one. By looks, for a wait that is cut short
// would take a signal.
RoomTurn::RoomTurn(const std::string& path, std::uint64_t wait_max_ns)
    : directory_(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) {
  const std::uint64_t until_ns = MonotonicNs() + wait_max_ns;
  for (;;) {
    const int fd = directory_.get();
    if (fd < 0) return;
    is_taken_ = flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (is_taken_ || (errno != EWOULDBLOCK && errno != EINTR)) return;
    if (MonotonicNs() >= until_ns) return;
    const timespec pause{.tv_sec = 0, .tv_nsec = 1'000'000};
    nanosleep(&pause, nullptr);
  }
}

// A child that was forked meanwhile has the same descriptor: closing ours would leave it the turn.
RoomTurn::~RoomTurn() {
  const int fd = directory_.get();
  if (is_taken_ && fd >= 0) flock(fd, LOCK_UN);
}

}  // namespace stepwell::recorder
