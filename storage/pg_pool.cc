#include "storage/pg_pool.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <pqxx/pqxx>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "storage/pg_url.h"

namespace stepwell {
namespace {

// After the deadline the server cancels by itself (statement_timeout); only one that does not
// answer at all is cut off.
constexpr absl::Duration kGrace = absl::Seconds(1);

// "ERROR:  division by zero\nDETAIL: ..." gives "division by zero".
std::string Primary(const char* what) {
  std::string text = what;
  const std::size_t end = text.find('\n');
  if (end != std::string::npos) text.resize(end);
  const std::size_t severity = text.find(":  ");
  return severity == std::string::npos ? text : text.substr(severity + 3);
}

// Inside a catch block: what the exception in flight means.
absl::Status FromPqxx() {
  try {
    throw;
  } catch (const pqxx::in_doubt_error& error) {
    return CommitUnknown(Primary(error.what()));
  } catch (const pqxx::sql_error& error) {
    return PgError(error.sqlstate(), Primary(error.what()));
  } catch (const pqxx::failure& error) {
    // A lost connection, in any of the forms in which the library tells it.
    return PgError("", Primary(error.what()));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory");
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("database client: ", Primary(error.what())));
  }
}

}  // namespace

class PgPool::Link {
 public:
  explicit Link(const std::string& conninfo)
      : connection_(conninfo), backend_pid_(connection_.backendpid()), socket_(DupSocket()) {}
  ~Link() { close(socket_); }

  pqxx::connection& connection() { return connection_; }
  absl::Time cut_off() const { return cut_off_; }
  void set_cut_off(absl::Time cut_off) { cut_off_ = cut_off; }

  // An idle connection has nothing to say: a readable socket brings its end. And one with another
  // backend was reconnected behind our back.
  bool Healthy() {
    pollfd readable{.fd = socket_, .events = POLLIN, .revents = 0};
    return poll(&readable, 1, 0) == 0 && connection_.is_open() &&
           connection_.backendpid() == backend_pid_;
  }

  // From another thread. Shuts the socket itself down, through a descriptor of our own: the
  // library's may be closed at any moment and its number mean another file.
  void CutOff() const { shutdown(socket_, SHUT_RDWR); }

 private:
  int DupSocket() const { return dup(connection_.sock()); }

  pqxx::connection connection_;
  const int backend_pid_;
  const int socket_;
  absl::Time cut_off_;  // guarded by the pool's mu_ while busy
};

absl::StatusOr<std::unique_ptr<PgPool>> PgPool::Open(Options options) {
  STEPWELL_CHECK(options.connection_count_max > 0);
  const std::int64_t timeout_s = absl::ToInt64Seconds(options.connect_timeout);
  STEPWELL_ASSIGN_OR_RETURN(
      std::string conninfo,
      PgConninfo(options.url,
                 {{"application_name", options.application_name},
                  {"connect_timeout", absl::StrCat(std::max<std::int64_t>(2, timeout_s))},
                  {"client_encoding", "UTF8"}}));
  return std::unique_ptr<PgPool>(new PgPool(std::move(options), std::move(conninfo)));
}

PgPool::PgPool(Options options, std::string conninfo)
    : options_(std::move(options)),
      conninfo_(std::move(conninfo)),
      watcher_("pg-pool-watch", [this] { Watch(); }) {}

PgPool::~PgPool() {
  {
    absl::MutexLock lock(&mu_);
    STEPWELL_CHECK(busy_.empty());
    stopping_ = true;
    ++busy_changes_;
  }
  watcher_.Join();
}

int PgPool::connection_count() const {
  absl::MutexLock lock(&mu_);
  return connection_count_;
}

absl::Status PgPool::Run(Access access, absl::Time deadline, const Body& body) {
  STEPWELL_ASSIGN_OR_RETURN(std::unique_ptr<Link> link, Acquire(deadline));
  Outcome outcome = RunOn(*link, access, deadline, body);
  {
    absl::MutexLock lock(&mu_);
    busy_.remove(link.get());
  }
  if (!outcome.sound || !link->Healthy()) link.reset();
  Release(std::move(link));
  return std::move(outcome.status);
}

absl::StatusOr<std::unique_ptr<PgPool::Link>> PgPool::Acquire(absl::Time deadline) {
  std::unique_ptr<Link> link;
  {
    absl::MutexLock lock(&mu_);
    const auto available = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return !idle_.empty() || connection_count_ < options_.connection_count_max;
    };
    if (!mu_.AwaitWithDeadline(absl::Condition(&available), deadline)) {
      return absl::DeadlineExceededError(
          absl::StrCat("all ", options_.connection_count_max, " database connections were busy"));
    }
    if (idle_.empty()) {
      ++connection_count_;
    } else {
      link = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (link != nullptr && !link->Healthy()) link.reset();
  if (link == nullptr) {
    absl::StatusOr<std::unique_ptr<Link>> fresh = Connect();
    if (!fresh.ok()) {
      Release(nullptr);
      return fresh.status();
    }
    link = *std::move(fresh);
  }
  absl::MutexLock lock(&mu_);
  link->set_cut_off(std::min(deadline, absl::Now() + options_.statement_timeout) + kGrace);
  busy_.push_back(link.get());
  ++busy_changes_;
  return link;
}

void PgPool::Release(std::unique_ptr<Link> link) {
  absl::MutexLock lock(&mu_);
  if (link == nullptr) {
    --connection_count_;
  } else {
    idle_.push_back(std::move(link));
  }
}

absl::StatusOr<std::unique_ptr<PgPool::Link>> PgPool::Connect() const {
  try {
    return std::make_unique<Link>(conninfo_);
  } catch (...) {
    return FromPqxx();
  }
}

PgPool::Outcome PgPool::RunOn(Link& link, Access access, absl::Time deadline, const Body& body) {
  bool committing = false;
  try {
    pqxx::work transaction(link.connection());
    transaction.exec(Preface(access, deadline));
    if (absl::Status refused = body(transaction); !refused.ok()) {
      transaction.abort();
      return {std::move(refused), /*sound=*/true};
    }
    committing = true;
    transaction.commit();
    return {absl::OkStatus(), /*sound=*/true};
  } catch (...) {
    absl::Status status = FromPqxx();
    // Only an SQL error on a connection that lives on tells what became of the COMMIT.
    const bool definite = !SqlState(status).empty() && link.connection().is_open();
    if (committing && !definite) status = CommitUnknown(std::string(status.message()));
    return {std::move(status), /*sound=*/false};
  }
}

std::string PgPool::Preface(Access access, absl::Time deadline) const {
  const absl::Duration left = std::min(deadline - absl::Now(), options_.statement_timeout);
  const std::int64_t timeout_ms = std::max<std::int64_t>(1, absl::ToInt64Milliseconds(left));
  const char* mode = nullptr;
  switch (access) {
    case Access::kRead:
      mode = "set transaction isolation level repeatable read, read only; ";
      break;
    case Access::kWrite:
      mode = "set transaction isolation level read committed, read write; ";
      break;
  }
  return absl::StrCat(mode, "set local statement_timeout = ", timeout_ms);
}

void PgPool::Watch() {
  absl::MutexLock lock(&mu_);
  while (!stopping_) {
    absl::Time next = absl::InfiniteFuture();
    for (Link* link : busy_) {
      if (link->cut_off() <= absl::Now()) {
        link->CutOff();
        link->set_cut_off(absl::InfiniteFuture());
      }
      next = std::min(next, link->cut_off());
    }
    const std::int64_t seen = busy_changes_;
    const auto changed = [this, seen]()
                             ABSL_SHARED_LOCKS_REQUIRED(mu_) { return busy_changes_ != seen; };
    mu_.AwaitWithDeadline(absl::Condition(&changed), next);
  }
}

}  // namespace stepwell
