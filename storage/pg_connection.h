// PgConnection: one connection to PostgreSQL over libpq, for all SQL there is (docs/decisions/0005).
// Threads that share some borrow them from a PgShelf. Thread-compatible: callers lock, or confine it
// to one thread.
//
//   STEPWELL_ASSIGN_OR_RETURN(auto connection, PgConnection::Open({.url = url}));
//   STEPWELL_RETURN_IF_ERROR(connection->Begin());
//   STEPWELL_ASSIGN_OR_RETURN(PgResult moved, connection->Exec(kAdvanceWriters, {writer_ids}));
//   STEPWELL_RETURN_IF_ERROR(connection->CopyIn(kCopyJournal, rows.Take()));
//   STEPWELL_RETURN_IF_ERROR(connection->Commit());
//
// Nothing reconnects by itself: after a lost connection every call returns kUnavailable, and the
// owner opens a new one. Each call blocks until the answer, `reply_timeout` or the cut, which close the
// connection, so that a stopped server never holds a thread for ever. Settings are made per transaction,
// and statements are unnamed but for those that say `keep`, and these too where the connection ends at
// another process than the server's, so that PgBouncer in transaction mode works.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/steady_time.h"
#include "storage/pg_cut.h"
#include "storage/pg_error.h"
#include "storage/pg_kept_statements.h"
#include "storage/pg_param.h"
#include "storage/pg_result.h"
#include "storage/sql_text.h"

struct pg_conn;    // libpq's
struct pg_result;  // libpq's

namespace stepwell {

// One statement of several that travel together.
struct PgStatement {
  SqlText sql = {};
  std::vector<PgParam> params = {};
  // It will be asked again: the server parses it once for the connection, and how it is planned the
  // transaction's plan_cache_mode says. For few texts. Unnamed like the others behind a pooler.
  bool keep = false;
};

// A statement that was kept is not there, or its name is somebody else's: there is a pooler after all. Or
// a migration changed what it answers. The connection keeps none from then on; whatever the transaction
// was doing may be done again.
bool IsStatementUnknown(const absl::Status& status);

class PgConnection {
 public:
  struct Options {
    // postgresql://... or key=value form.
    std::string url = {};
    // Shown in pg_stat_activity.
    std::string application_name = "stepwell";
    // For each address of each host that the URL names.
    absl::Duration connect_timeout = absl::Seconds(10);
    // Server side, for each statement of a transaction.
    absl::Duration statement_timeout = absl::Seconds(30);
    // Server side: a transaction of a stopped master lets go of its row locks after this.
    absl::Duration idle_in_transaction_timeout = absl::Seconds(30);
    // Client side, for each answer. REQUIRES: longer than statement_timeout.
    absl::Duration reply_timeout = absl::Seconds(40);
    // Its transactions plan by indexes wherever there is one: what is kept was planned while its tables were
    // small, and outlives that.
    bool plans_by_index = false;
    // Ends all waits at its moment; null = none does.
    std::shared_ptr<const PgCut> cut = nullptr;
    // Grows each time that an answer is waited for, COPY apart; null = nobody counts.
    std::shared_ptr<std::atomic<std::int64_t>> round_trip_count = nullptr;
  };

  static absl::StatusOr<std::unique_ptr<PgConnection>> Open(Options options);
  ~PgConnection();
  PgConnection(const PgConnection&) = delete;
  PgConnection& operator=(const PgConnection&) = delete;

  // One statement with values bound to $1, $2, ...
  absl::StatusOr<PgResult> Exec(const SqlText& sql, std::span<const PgParam> params);
  absl::StatusOr<PgResult> Exec(const SqlText& sql, std::initializer_list<PgParam> params = {}) {
    return Exec(sql, std::span<const PgParam>(params.begin(), params.size()));
  }
  // In one round trip, in order; one result each. The first that fails ends them and is the answer:
  // outside of a transaction none has done anything then. None may be a COPY.
  absl::StatusOr<std::vector<PgResult>> ExecAll(std::span<const PgStatement> statements);
  // One statement that is asked again and again on this connection, kept: parsed and planned once.
  // kUnavailable where the server does not have it any more, or it answers other columns since: whoever
  // does the transaction again finds it unnamed.
  absl::StatusOr<PgResult> ExecKept(SqlText sql, std::vector<PgParam> params);
  // Sends a statement without values that ExecAll has kept on this connection, and does not wait: TakeSent has
  // its answer, which any other call drops. False = nothing was sent.
  bool SendKeptAhead(const SqlText& sql);
  // REQUIRES: SendKeptAhead was true, and nothing was called since.
  absl::StatusOr<PgResult> TakeSent();
  // Whether statements that say so are kept; false until the first ExecAll with one has looked.
  bool keeps_statements() const { return keeps_ == Keeps::kYes; }
  // Several statements without values, as one string: for migrations and DDL of ours only.
  absl::Status ExecScript(const SqlText& sql);

  // READ COMMITTED, synchronous_commit on, with the timeouts of the options. One round trip.
  absl::Status Begin();
  // The statuses are those of PgError, or CommitUnknown when the connection died before the
  // answer. A COMMIT that PostgreSQL turned into a rollback is kAborted.
  absl::Status Commit();
  // Safe to call when no transaction is open.
  absl::Status Rollback();
  // Sends a rollback and does not wait for its answer, which the next call takes first. Nothing to do
  // when no transaction is open.
  void RollbackLater();
  // Begin, body, Commit; Rollback when the body fails.
  absl::Status InTransaction(const std::function<absl::Status()>& body);

  // `copy_sql` is "copy t (...) from stdin (format binary)"; `data` is PgCopyRows' Take().
  // Returns the number of rows.
  absl::StatusOr<std::int64_t> CopyIn(const SqlText& copy_sql, std::string_view data);

  // From the next statement on; absl::InfiniteDuration() waits for ever. For migrations.
  void set_reply_timeout(absl::Duration timeout) { reply_timeout_ = timeout; }
  absl::Duration reply_timeout() const { return reply_timeout_; }
  // False once the connection is lost; it never recovers.
  bool usable() const;
  // REQUIRES: no transaction is open. Whether the next statement may find it alive: an idle server
  // has nothing to say, so that anything to read is its farewell (or a setting that was reloaded). False where it
  // is given up, too.
  bool usable_after_rest();
  // Its server stops (pg_stop_watch.h): who holds it closes it once no transaction is open.
  bool is_given_up() const { return place_ != nullptr && place_->is_over(); }
  // Process id of our backend, for tests and for pg_cancel_backend.
  int backend_pid() const;
  // 150020 for 15.20.
  int server_version() const;

 private:
  PgConnection(Options options, pg_conn* connection, std::unique_ptr<PgSessions::Place> place);
  static absl::Status StatusOf(const pg_result* result);
  static bool IsError(const pg_result* result);
  // After the answer that RollbackLater or SendKeptAhead left.
  absl::Status Usable();
  absl::Status SendParams(const SqlText& sql, std::span<const PgParam> params);
  absl::Status Flush(SteadyTime deadline);
  // Waits for and takes the next result; null at the end of the statement's answers.
  absl::StatusOr<pg_result*> NextResult(SteadyTime deadline);
  // Takes all results of what was sent; the last one, or the first error.
  absl::StatusOr<PgResult> TakeResults();
  enum class Keeps { kUnknown, kYes, kNo };
  struct Step;  // of a pipeline
  absl::Status SendAll(std::span<const PgStatement> statements, std::vector<Step>& steps);
  absl::Status SendKept(const PgStatement& statement, std::vector<Step>& steps);
  // Those of a pipeline of `count` steps, up to and with its end; the first that failed.
  absl::Status TakePipeline(std::size_t count, std::vector<PgResult>& results);
  void NoteSteps(std::vector<Step>& steps, const std::vector<PgResult>& results);
  void KeepNoMore();
  void CountRoundTrip() const;
  absl::Status WaitSocket(short events, SteadyTime deadline);
  absl::Status PutCopyData(std::string_view data, SteadyTime deadline);
  absl::Status LostConnection(std::string_view doing);

  const Options options_;
  const SqlText begin_sql_;
  absl::Duration reply_timeout_;
  pg_conn* connection_;
  std::unique_ptr<PgSessions::Place> place_;  // null without a cut, or once it is lost
  bool is_settling_ = false;  // the answer of RollbackLater or SendKeptAhead is still to come
  Keeps keeps_ = Keeps::kUnknown;
  PgKeptStatements kept_;
  std::vector<std::string> not_let_go_;  // names that are still to be
};

}  // namespace stepwell
