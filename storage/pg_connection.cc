#include "storage/pg_connection.h"

#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "storage/pg_bound_params.h"
#include "storage/pg_connect.h"
#include "storage/pg_url.h"

namespace stepwell {
namespace {

// libpq copies what it is given into its send buffer; small pieces keep that buffer small.
constexpr std::size_t kCopyPieceBytes = 64 * 1024;
// How long a network may swallow what we sent before the connection counts as lost.
constexpr char kTcpUserTimeoutMs[] = "30000";

SqlText BeginSql(const PgConnection::Options& options) {
  // An ack promises what was fsynced, whatever the role or the database were set to.
  return SqlCat(
      {"begin isolation level read committed; set local synchronous_commit = on",
       "; set local statement_timeout = ",
       SqlInteger(absl::ToInt64Milliseconds(options.statement_timeout)),
       "; set local idle_in_transaction_session_timeout = ",
       SqlInteger(absl::ToInt64Milliseconds(options.idle_in_transaction_timeout)),
       options.plans_by_index ? SqlPiece("; set local enable_seqscan = off") : SqlPiece("")});
}

}  // namespace

absl::Status PgConnection::StatusOf(const PGresult* result) {
  const char* sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  // Without fields the error is libpq's own: the connection is gone.
  return PgError(sqlstate == nullptr ? "" : sqlstate,
                 message == nullptr ? PQresultErrorMessage(result) : message);
}

bool PgConnection::IsError(const PGresult* result) {
  const ExecStatusType status = PQresultStatus(result);
  return status == PGRES_FATAL_ERROR || status == PGRES_BAD_RESPONSE;
}

absl::StatusOr<std::unique_ptr<PgConnection>> PgConnection::Open(Options options) {
  STEPWELL_CHECK(options.reply_timeout > options.statement_timeout);
  STEPWELL_ASSIGN_OR_RETURN(
      const std::vector<std::string> targets,
      PgConninfoOfEachHost(options.url, {{"application_name", options.application_name},
                                         {"client_encoding", "UTF8"},
                                         {"tcp_user_timeout", kTcpUserTimeoutMs}}));
  const PgCut* const cut = options.cut.get();
  const std::int64_t era = cut == nullptr ? 0 : cut->sessions().era();
  STEPWELL_ASSIGN_OR_RETURN(PGconn* const connection,
                            PgConnect(targets, {.patience = options.connect_timeout, .cut = cut}));
  PQsetnonblocking(connection, 1);
  // Notices are for people at a prompt; libpq would print them to stderr.
  PQsetNoticeReceiver(
      connection, [](void*, const PGresult*) {}, nullptr);
  auto place = cut == nullptr ? nullptr : cut->sessions().Enter(PQsocket(connection), era);
  return std::unique_ptr<PgConnection>(
      new PgConnection(std::move(options), connection, std::move(place)));
}

PgConnection::PgConnection(Options options, PGconn* connection,
                           std::unique_ptr<PgSessions::Place> place)
    : options_(std::move(options)),
      begin_sql_(BeginSql(options_)),
      reply_timeout_(options_.reply_timeout),
      connection_(connection),
      place_(std::move(place)) {}

PgConnection::~PgConnection() { PQfinish(connection_); }

bool PgConnection::usable() const {
  return connection_ != nullptr && PQstatus(connection_) == CONNECTION_OK;
}
bool PgConnection::usable_after_rest() {
  if (is_given_up() || !Usable().ok()) return false;
  pollfd readable{.fd = PQsocket(connection_), .events = POLLIN, .revents = 0};
  return poll(&readable, 1, 0) == 0;
}
int PgConnection::backend_pid() const {
  return connection_ == nullptr ? 0 : PQbackendPID(connection_);
}
int PgConnection::server_version() const {
  return connection_ == nullptr ? 0 : PQserverVersion(connection_);
}

absl::Status PgConnection::Usable() {
  // Without counting: nobody has waited for it.
  if (std::exchange(is_settling_, false)) STEPWELL_RETURN_IF_ERROR(TakeResults().status());
  if (usable()) return absl::OkStatus();
  return absl::UnavailableError("PostgreSQL connection: already lost");
}

absl::StatusOr<PgResult> PgConnection::Exec(const SqlText& sql, std::span<const PgParam> params) {
  STEPWELL_RETURN_IF_ERROR(Usable());
  CountRoundTrip();
  STEPWELL_RETURN_IF_ERROR(SendParams(sql, params));
  return TakeResults();
}

void PgConnection::CountRoundTrip() const {
  if (options_.round_trip_count != nullptr) ++*options_.round_trip_count;
}

absl::Status PgConnection::ExecScript(const SqlText& sql) {
  STEPWELL_RETURN_IF_ERROR(Usable());
  CountRoundTrip();
  if (PQsendQuery(connection_, sql.c_str()) == 0) return LostConnection("send");
  return TakeResults().status();
}

absl::Status PgConnection::SendParams(const SqlText& sql, std::span<const PgParam> params) {
  const PgBoundParams bound(params);
  const int sent = PQsendQueryParams(connection_, sql.c_str(), bound.count(), bound.types.data(),
                                     bound.values.data(), bound.lengths.data(),
                                     bound.formats.data(), /*resultFormat=*/PgBoundParams::kBinary);
  return sent == 0 ? LostConnection("send") : absl::OkStatus();
}

absl::StatusOr<PgResult> PgConnection::TakeResults() {
  const SteadyTime deadline = SteadyTime::Now() + reply_timeout_;
  STEPWELL_RETURN_IF_ERROR(Flush(deadline));
  PgResult last;
  absl::Status failure;
  while (true) {
    STEPWELL_ASSIGN_OR_RETURN(PGresult * next, NextResult(deadline));
    if (next == nullptr) break;
    PgResult owned(next);
    if (IsError(next) && failure.ok()) failure = StatusOf(next);
    last = std::move(owned);
    // A COPY must be answered before the next result; CopyIn does so.
    if (PQresultStatus(next) == PGRES_COPY_IN) break;
  }
  if (!failure.ok()) return failure;
  return last;
}

absl::Status PgConnection::Flush(SteadyTime deadline) {
  while (true) {
    const int left = PQflush(connection_);
    if (left == 0) return absl::OkStatus();
    if (left < 0) return LostConnection("send");
    STEPWELL_RETURN_IF_ERROR(WaitSocket(POLLIN | POLLOUT, deadline));
    // The server may be sending too (an error, notices): read, or both sides wait for ever.
    if (PQconsumeInput(connection_) == 0) return LostConnection("receive");
  }
}

absl::StatusOr<PGresult*> PgConnection::NextResult(SteadyTime deadline) {
  while (PQisBusy(connection_) != 0) {
    STEPWELL_RETURN_IF_ERROR(WaitSocket(POLLIN, deadline));
    if (PQconsumeInput(connection_) == 0) return LostConnection("receive");
  }
  return PQgetResult(connection_);
}

absl::Status PgConnection::WaitSocket(short events, SteadyTime deadline) {
  while (true) {
    const absl::Duration left = deadline.Left();
    if (left <= absl::ZeroDuration()) return LostConnection("no answer in time");
    const int cut = options_.cut == nullptr ? -1 : options_.cut->descriptor();
    pollfd waited[] = {{.fd = PQsocket(connection_), .events = events, .revents = 0},
                       {.fd = cut, .events = POLLIN, .revents = 0}};
    const int timeout_ms =
        static_cast<int>(absl::ToInt64Milliseconds(std::min(left, absl::Hours(1)))) + 1;
    const int ready = poll(waited, std::size(waited), timeout_ms);
    if (ready > 0 && waited[1].revents != 0) return LostConnection(kCutMessage);
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return LostConnection("poll");
  }
}

absl::Status PgConnection::LostConnection(std::string_view doing) {
  std::string message(doing);
  if (connection_ != nullptr) absl::StrAppend(&message, ": ", PQerrorMessage(connection_));
  PQfinish(connection_);
  connection_ = nullptr;
  place_.reset();
  return PgError("", message);
}

absl::Status PgConnection::Begin() { return ExecScript(begin_sql_); }

absl::Status PgConnection::Commit() {
  STEPWELL_RETURN_IF_ERROR(Usable());
  CountRoundTrip();
  if (PQsendQuery(connection_, "commit") == 0) return CommitUnknown("connection lost");
  absl::StatusOr<PgResult> result = TakeResults();
  if (!usable()) return CommitUnknown(std::string(result.status().message()));
  if (!result.ok()) {
    // An ERROR is definite: the transaction is rolled back. A FATAL also ends the connection, and
    // may come after the commit record was written (waiting for a standby), so it was caught above.
    return result.status();
  }
  if (result->command() == "ROLLBACK") {
    return absl::AbortedError("COMMIT of a failed transaction was a rollback");
  }
  return absl::OkStatus();
}

void PgConnection::RollbackLater() {
  if (is_settling_ || !usable() || PQtransactionStatus(connection_) == PQTRANS_IDLE) return;
  is_settling_ = PQsendQuery(connection_, "rollback") != 0 && PQflush(connection_) == 0;
  if (!is_settling_) LostConnection("send").IgnoreError();
}

absl::Status PgConnection::Rollback() {
  if (is_settling_) return absl::OkStatus();
  STEPWELL_RETURN_IF_ERROR(Usable());
  if (PQtransactionStatus(connection_) == PQTRANS_IDLE) return absl::OkStatus();
  return ExecScript("rollback");
}

absl::Status PgConnection::InTransaction(const std::function<absl::Status()>& body) {
  STEPWELL_RETURN_IF_ERROR(Begin());
  if (absl::Status status = body(); !status.ok()) {
    Rollback().IgnoreError();  // the body's failure is the one to tell
    return status;
  }
  return Commit();
}

absl::StatusOr<std::int64_t> PgConnection::CopyIn(const SqlText& copy_sql, std::string_view data) {
  STEPWELL_RETURN_IF_ERROR(Exec(copy_sql).status());
  const SteadyTime deadline = SteadyTime::Now() + reply_timeout_;
  STEPWELL_RETURN_IF_ERROR(PutCopyData(data, deadline));
  while (true) {
    const int ended = PQputCopyEnd(connection_, nullptr);
    if (ended == 1) break;
    if (ended < 0) return LostConnection("copy");
    STEPWELL_RETURN_IF_ERROR(Flush(deadline));
  }
  STEPWELL_ASSIGN_OR_RETURN(const PgResult result, TakeResults());
  return result.affected_count();
}

absl::Status PgConnection::PutCopyData(std::string_view data, SteadyTime deadline) {
  while (!data.empty()) {
    const std::string_view piece = data.substr(0, kCopyPieceBytes);
    const int queued = PQputCopyData(connection_, piece.data(), static_cast<int>(piece.size()));
    if (queued < 0) return LostConnection("copy");
    if (queued == 1) data.remove_prefix(piece.size());
    STEPWELL_RETURN_IF_ERROR(Flush(deadline));
  }
  return absl::OkStatus();
}

}  // namespace stepwell
