#include "storage/pg_connect.h"

#include <libpq-fe.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/steady_time.h"
#include "storage/pg_error.h"

namespace stepwell {
namespace {

struct Finish {
  void operator()(PGconn* connection) const { PQfinish(connection); }
};
using Connecting = std::unique_ptr<PGconn, Finish>;

enum class Woken { kReady, kTooLate, kCut };

bool IsCut(const PgCut* cut) { return cut != nullptr && cut->is_cut(); }

Woken Wait(int socket, short events, SteadyTime deadline, const PgCut* cut) {
  while (true) {
    if (IsCut(cut)) return Woken::kCut;
    const absl::Duration left = deadline.Left();
    if (left <= absl::ZeroDuration()) return Woken::kTooLate;
    pollfd waited[] = {
        {.fd = socket, .events = events, .revents = 0},
        {.fd = cut == nullptr ? -1 : cut->descriptor(), .events = POLLIN, .revents = 0}};
    const int timeout_ms =
        static_cast<int>(absl::ToInt64Milliseconds(std::min(left, absl::Hours(1)))) + 1;
    const int ready = poll(waited, std::size(waited), timeout_ms);
    if (ready > 0 && waited[0].revents != 0) return Woken::kReady;
    if (ready < 0 && errno != EINTR) return Woken::kTooLate;
  }
}

std::string AddressOf(const PGconn* connection) {
  const char* address = PQhostaddr(connection);
  return address == nullptr ? "" : address;
}

// libpq goes on with the next address by itself where one refuses; one that says nothing is given up
// here.
absl::Status Open(PGconn* connection, const PgConnectOptions& options) {
  PostgresPollingStatusType next = PGRES_POLLING_WRITING;
  std::string address = AddressOf(connection);
  SteadyTime deadline = SteadyTime::Now() + options.patience;
  bool is_given_up = false;
  while (true) {
    const short events = next == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    switch (Wait(PQsocket(connection), events, deadline, options.cut)) {
      case Woken::kCut:
        return absl::UnavailableError(kCutMessage);
      case Woken::kTooLate:
        // One that has not even accepted fails by that, as if it had refused.
        if (is_given_up || shutdown(PQsocket(connection), SHUT_RDWR) != 0) {
          return PgError("", "connect: no answer in time");
        }
        is_given_up = true;
        deadline = SteadyTime::Now() + options.patience;
        break;
      case Woken::kReady:
        break;
    }
    next = PQconnectPoll(connection);
    if (next == PGRES_POLLING_OK) return absl::OkStatus();
    if (next == PGRES_POLLING_FAILED) {
      return PgError(
          "", absl::StrCat(is_given_up ? "no answer in time: " : "", PQerrorMessage(connection)));
    }
    if (std::string now = AddressOf(connection); now != address) {
      address = std::move(now);
      deadline = SteadyTime::Now() + options.patience;
      is_given_up = false;
    }
  }
}

}  // namespace

absl::StatusOr<PGconn*> PgConnect(const std::vector<std::string>& targets,
                                  const PgConnectOptions& options) {
  absl::Status failed = absl::InvalidArgumentError("connect: no host is named");
  for (const std::string& target : targets) {
    if (IsCut(options.cut)) return absl::UnavailableError(kCutMessage);
    Connecting connection(PQconnectStart(target.c_str()));
    if (connection == nullptr) return absl::ResourceExhaustedError("no memory for a connection");
    failed = PQstatus(connection.get()) == CONNECTION_BAD
                 ? PgError("", PQerrorMessage(connection.get()))
                 : Open(connection.get(), options);
    if (failed.ok()) return connection.release();
  }
  return failed;
}

}  // namespace stepwell
