#include "client/agent/arrival_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stepwell::agent {
namespace {

// Whoever makes names without end costs so many wakes, no more.
constexpr int kPauseMs = 10;

}  // namespace

ArrivalWatch::ArrivalWatch(std::function<void()> on_arrival)
    : on_arrival_(std::move(on_arrival)),
      events_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)),
      stop_(eventfd(0, EFD_CLOEXEC)) {
  watches_all_ = events_.valid() && stop_.valid();
  if (!watches_all_) return;
  worker_ = Worker("agent-arrivals", [this] { Run(); });
}

ArrivalWatch::~ArrivalWatch() {
  const std::uint64_t one = 1;
  if (stop_.valid()) (void)!write(stop_.get(), &one, sizeof(one));
}

void ArrivalWatch::Add(int directory) {
  if (!events_.valid()) return;
  // The directory that is open, whatever its name leads to by now.
  const std::string path = absl::StrCat("/proc/self/fd/", directory);
  const int watch =
      inotify_add_watch(events_.get(), path.c_str(), IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
  watches_all_ = watches_all_ && watch >= 0;
}

void ArrivalWatch::Run() {
  std::array<char, 4096> bytes;  // what came is of no interest, only that it did
  std::array<pollfd, 2> both = {pollfd{stop_.get(), POLLIN, 0}, pollfd{events_.get(), POLLIN, 0}};
  while (true) {
    if (poll(both.data(), both.size(), -1) < 0 && errno != EINTR) return;
    if ((both[0].revents & POLLIN) != 0) return;
    bool any = false;
    while (read(events_.get(), bytes.data(), bytes.size()) > 0) any = true;
    if (any) on_arrival_();
    if (poll(both.data(), 1, kPauseMs) > 0) return;
  }
}

}  // namespace stepwell::agent
