#include "client/cli/stoppable.h"

#include <time.h>

#include "absl/synchronization/notification.h"
#include "base/worker.h"

namespace stepwell::cli {

HeldSignals::HeldSignals() {
  sigemptyset(&set_);
  for (const int one : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set_, one);
  pthread_sigmask(SIG_BLOCK, &set_, &before_);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

HeldSignals::~HeldSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

bool HeldSignals::Wait(absl::Duration at_most) const {
  const timespec time = absl::ToTimespec(at_most);
  return sigtimedwait(&set_, nullptr, &time) > 0;
}

bool RunStoppable(const HeldSignals& signals, const std::string& name,
                  const std::function<void()>& body, const std::function<void()>& stop,
                  const std::function<void()>& look) {
  absl::Notification ended;
  const Worker worker(name, [&] {
    body();
    ended.Notify();
  });
  bool was_stopped = false;
  while (!ended.HasBeenNotified()) {
    look();
    // At the end nobody notices so much more.
    if (!signals.Wait(absl::Milliseconds(50))) continue;
    was_stopped = true;
    stop();
  }
  return was_stopped;
}

}  // namespace stepwell::cli
