// The half of PgConnection that sends several statements at once, and those that the server keeps.
#include "base/steady_time.h"
#include "storage/pg_connection.h"

#include <libpq-fe.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "storage/pg_bound_params.h"

namespace stepwell {

// What is sent on behalf of statements; each has one answer.
struct PgConnection::Step {
  enum class Kind { kAnswer, kBackend, kPrepare, kLetGo };
  Kind kind{};
  std::string text = {};  // kPrepare: the statement; kLetGo: its name
};

bool IsStatementUnknown(const absl::Status& status) {
  const std::string state = SqlState(status);
  // No such name; a name of somebody else's; another type of result.
  return state == "26000" || state == "42P05" || state == "0A000";
}

absl::StatusOr<PgResult> PgConnection::ExecKept(SqlText sql, std::vector<PgParam> params) {
  const PgStatement statement = {std::move(sql), std::move(params), /*keep=*/true};
  auto results = ExecAll({&statement, 1});
  if (results.ok()) return std::move(results->front());
  if (!IsStatementUnknown(results.status())) return results.status();
  return ComeAgainBecause("a kept statement is of no use any more: ", results.status());
}

bool PgConnection::SendKeptAhead(const SqlText& sql) {
  if (!keeps_statements() || !Usable().ok()) return false;
  const std::string name = kept_.UseKnown(sql.text());
  if (name.empty()) return false;
  is_settling_ = PQsendQueryPrepared(connection_, name.c_str(), 0, nullptr, nullptr, nullptr,
                                     /*resultFormat=*/PgBoundParams::kBinary) != 0 &&
                 PQflush(connection_) == 0;
  if (!is_settling_) LostConnection("send").IgnoreError();
  return is_settling_;
}

absl::StatusOr<PgResult> PgConnection::TakeSent() {
  STEPWELL_CHECK(is_settling_);
  is_settling_ = false;
  CountRoundTrip();
  auto answer = TakeResults();
  if (IsStatementUnknown(answer.status())) KeepNoMore();
  return answer;
}

void PgConnection::KeepNoMore() {
  keeps_ = Keeps::kNo;
  kept_.Clear();
}

absl::StatusOr<std::vector<PgResult>> PgConnection::ExecAll(
    std::span<const PgStatement> statements) {
  STEPWELL_RETURN_IF_ERROR(Usable());
  if (PQenterPipelineMode(connection_) == 0) return LostConnection("pipeline");
  std::vector<Step> steps;
  STEPWELL_RETURN_IF_ERROR(SendAll(statements, steps));
  if (PQpipelineSync(connection_) == 0) return LostConnection("send");
  std::vector<PgResult> results;
  const absl::Status status = TakePipeline(steps.size(), results);
  if (usable() && PQexitPipelineMode(connection_) == 0) return LostConnection("pipeline");
  NoteSteps(steps, results);
  if (IsStatementUnknown(status)) KeepNoMore();
  if (!status.ok()) return status;
  std::vector<PgResult> answers;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].kind == Step::Kind::kAnswer) answers.push_back(std::move(results[i]));
  }
  return answers;
}

absl::Status PgConnection::SendAll(std::span<const PgStatement> statements,
                                   std::vector<Step>& steps) {
  for (const PgStatement& statement : statements) {
    if (statement.keep && keeps_statements()) {
      STEPWELL_RETURN_IF_ERROR(SendKept(statement, steps));
    } else {
      steps.push_back({Step::Kind::kAnswer});
      STEPWELL_RETURN_IF_ERROR(SendParams(statement.sql, statement.params));
    }
  }
  // What is ours comes last: before a BEGIN with an isolation level nothing may take a snapshot.
  const auto wants_keeping = [](const PgStatement& each) { return each.keep; };
  if (keeps_ == Keeps::kUnknown &&
      std::any_of(statements.begin(), statements.end(), wants_keeping)) {
    steps.push_back({Step::Kind::kBackend});
    STEPWELL_RETURN_IF_ERROR(SendParams("select pg_backend_pid()", {}));
  }
  for (std::string& name : std::exchange(not_let_go_, {})) {
    // Not a value that could be bound; it is a name of ours.
    STEPWELL_RETURN_IF_ERROR(SendParams(SqlCat({"deallocate ", SqlName(name)}), {}));
    steps.push_back({Step::Kind::kLetGo, std::move(name)});
  }
  return absl::OkStatus();
}

absl::Status PgConnection::SendKept(const PgStatement& statement, std::vector<Step>& steps) {
  PgKeptStatements::Place place = kept_.Use(statement.sql.text());
  if (place.let_go) not_let_go_.push_back(*std::move(place.let_go));
  const PgBoundParams bound(statement.params);
  if (place.is_new) {
    steps.push_back({Step::Kind::kPrepare, std::string(statement.sql.text())});
    if (PQsendPrepare(connection_, place.name.c_str(), statement.sql.c_str(), bound.count(),
                      bound.types.data()) == 0) {
      return LostConnection("send");
    }
  }
  steps.push_back({Step::Kind::kAnswer});
  const int sent = PQsendQueryPrepared(
      connection_, place.name.c_str(), bound.count(), bound.values.data(), bound.lengths.data(),
      bound.formats.data(), /*resultFormat=*/PgBoundParams::kBinary);
  return sent == 0 ? LostConnection("send") : absl::OkStatus();
}

absl::Status PgConnection::TakePipeline(std::size_t count, std::vector<PgResult>& results) {
  CountRoundTrip();
  const SteadyTime deadline = SteadyTime::Now() + reply_timeout_;
  STEPWELL_RETURN_IF_ERROR(Flush(deadline));
  absl::Status failure;
  // Each statement's answer is one result and a null; what comes after a failure is said to be aborted.
  for (std::size_t i = 0; i < count; ++i) {
    STEPWELL_ASSIGN_OR_RETURN(PGresult * next, NextResult(deadline));
    if (next == nullptr) return LostConnection("pipeline");
    results.emplace_back(next);
    if (IsError(next) && failure.ok()) failure = StatusOf(next);
    STEPWELL_ASSIGN_OR_RETURN(next, NextResult(deadline));
    if (next == nullptr) continue;
    PQclear(next);
    return LostConnection("pipeline");
  }
  STEPWELL_ASSIGN_OR_RETURN(PGresult* const end, NextResult(deadline));
  const PgResult owned(end);
  if (PQresultStatus(end) != PGRES_PIPELINE_SYNC) return LostConnection("pipeline");
  return failure;
}

// Of a connection that was lost nothing is noted: it is not used again.
void PgConnection::NoteSteps(std::vector<Step>& steps, const std::vector<PgResult>& results) {
  if (!usable() || results.size() != steps.size()) return;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const bool done = results[i].ok();
    switch (steps[i].kind) {
      case Step::Kind::kAnswer:
        break;
      case Step::Kind::kBackend:
        // A pooler shows a process of its own; behind it names are not ours, or on another backend.
        if (done) keeps_ = results[i].Int32(0, 0) == backend_pid() ? Keeps::kYes : Keeps::kNo;
        break;
      case Step::Kind::kPrepare:
        if (!done) kept_.Forget(steps[i].text);
        break;
      case Step::Kind::kLetGo:
        if (!done) not_let_go_.push_back(std::move(steps[i].text));
        break;
    }
  }
}

}  // namespace stepwell
