#include "storage/pg_sessions.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace stepwell {

PgSessions::Place::Place(PgSessions& sessions, int socket, std::int64_t era)
    : sessions_(sessions), socket_(fcntl(socket, F_DUPFD_CLOEXEC, 0)), era_(era) {
  absl::MutexLock lock(&sessions_.mu_);
  sessions_.places_.insert(this);
}

PgSessions::Place::~Place() {
  {
    absl::MutexLock lock(&sessions_.mu_);
    sessions_.places_.erase(this);
  }
  if (socket_ >= 0) close(socket_);
}

int PgSessions::GiveUp() {
  ++era_;
  absl::MutexLock lock(&mu_);
  int count = 0;
  for (const Place* place : places_) count += place->is_over() ? 1 : 0;
  return count;
}

int PgSessions::EndOver() {
  absl::MutexLock lock(&mu_);
  int count = 0;
  for (const Place* place : places_) {
    if (!place->is_over()) continue;
    ++count;
    // Both ends see it: the server's as if we had gone away, ours as a connection that is lost.
    if (place->socket_ >= 0) shutdown(place->socket_, SHUT_RDWR);
  }
  return count;
}

}  // namespace stepwell
