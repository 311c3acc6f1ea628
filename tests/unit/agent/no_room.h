// NoRoom: no file of this process grows while it lives, as on a full disk.
#pragma once

#include <signal.h>
#include <sys/resource.h>

namespace stepwell::agent {

class NoRoom {
 public:
  NoRoom() {
    was_ = signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &room_);
    const rlimit none = {.rlim_cur = 0, .rlim_max = room_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &none);
  }
  ~NoRoom() {
    setrlimit(RLIMIT_FSIZE, &room_);
    signal(SIGXFSZ, was_);
  }
  NoRoom(const NoRoom&) = delete;
  NoRoom& operator=(const NoRoom&) = delete;

 private:
  void (*was_)(int) = SIG_DFL;
  rlimit room_ = {};
};

}  // namespace stepwell::agent
