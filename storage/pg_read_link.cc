#include "storage/pg_read_link.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "storage/pg_reader_sql.h"

namespace stepwell {
namespace {

constexpr char kUndefinedTable[] = "42P01";

std::string MillisecondsText(absl::Duration duration) {
  return absl::StrCat(std::max<std::int64_t>(1, absl::ToInt64Milliseconds(duration)));
}

const char* PlanMode(ReadPlan plan) {
  return plan == ReadPlan::kOnce ? "force_generic_plan" : "auto";
}
// What is planned once must not be planned for a table that is still small.
const char* SeqscanMode(ReadPlan plan) { return plan == ReadPlan::kOnce ? "off" : "on"; }

}  // namespace

PgReadLink::~PgReadLink() {
  if (loan_.has_connection()) loan_->RollbackLater();
}

void PgReadLink::Begin(SteadyTime deadline) {
  const SteadyTime now = SteadyTime::Now();
  patience_ = ReadPatience(deadline, now);
  const absl::Duration statement_max = std::min(patience_.Left(now), kStatementMax);
  // A reader pauses between pages as long as its client is slow.
  const absl::Duration pause_max = statement_max + absl::Seconds(5);
  // Most transactions begin with bookkeeping, which is planned once.
  plan_ = loan_->keeps_statements() ? ReadPlan::kOnce : ReadPlan::kForValues;
  PutOff(ReadQuery::kControl, sql::kBeginRead, {}, ReadPlan::kOnce);
  PutOff(ReadQuery::kControl, sql::kLimitRead,
         {MillisecondsText(statement_max), MillisecondsText(pause_max), PlanMode(plan_),
          SeqscanMode(plan_)},
         ReadPlan::kOnce);
}

PgReadLink::Ticket PgReadLink::Queue(ReadQuery query, SqlText sql, std::vector<PgParam> params,
                                     ReadPlan plan) {
  Add(++last_ticket_, query, std::move(sql), std::move(params), plan);
  return last_ticket_;
}

void PgReadLink::PutOff(ReadQuery query, SqlText sql, std::vector<PgParam> params, ReadPlan plan) {
  Add(0, query, std::move(sql), std::move(params), plan);
}

void PgReadLink::Add(Ticket ticket, ReadQuery query, SqlText sql, std::vector<PgParam> params,
                     ReadPlan plan) {
  if (query != ReadQuery::kControl) EnterPlan(plan);
  queued_.push_back({query, {std::move(sql), std::move(params), plan == ReadPlan::kOnce}});
  tickets_.push_back(ticket);
}

void PgReadLink::EnterPlan(ReadPlan plan) {
  // Where nothing is kept, everything is planned for its values.
  if (plan == plan_ || !loan_->keeps_statements()) return;
  plan_ = plan;
  PutOff(ReadQuery::kControl, sql::kPlanRead, {PlanMode(plan), SeqscanMode(plan)}, ReadPlan::kOnce);
}

LeafPlaces PgReadLink::LeavesBy(const std::vector<LeafRange>& leaves) {
  if (!AreFew(leaves) || !memory_.may_name_leaves()) return LeafPlaces::kPruned;
  names_leaves_ = true;
  return LeafPlaces::kNamed;
}

bool PgReadLink::SendAhead(ReadQuery query, const SqlText& sql) {
  STEPWELL_CHECK(queued_.empty());
  if (!loan_->SendKeptAhead(sql)) return false;
  const ReadStatement sent = {query, {sql, {}, /*keep=*/true}};
  if (watch_) watch_({&sent, 1});
  return true;
}

absl::StatusOr<PgResult> PgReadLink::Take(Ticket ticket) {
  auto answer = answers_.find(ticket);
  if (answer == answers_.end()) {
    STEPWELL_RETURN_IF_ERROR(RunQueued());
    answer = answers_.find(ticket);
    // Of a round trip that failed: the transaction is over.
    if (answer == answers_.end()) return absl::AbortedError("read: an earlier statement failed");
  }
  PgResult taken = std::move(answer->second);
  answers_.erase(answer);
  return taken;
}

void PgReadLink::Forget(Ticket ticket) {
  answers_.erase(ticket);
  std::replace(tickets_.begin(), tickets_.end(), ticket, Ticket{0});
}

absl::Status PgReadLink::HeedPatience() {
  const SteadyTime now = SteadyTime::Now();
  STEPWELL_ASSIGN_OR_RETURN(const ReadPatience::Looked looked, patience_.Ask(now));
  const absl::Duration left = patience_.Left(now);
  // Before the first answer Begin says so itself. It travels with what is asked, so that it costs no round trip.
  if (looked == ReadPatience::Looked::kNo || !has_answered_ || left >= kStatementMax) {
    return absl::OkStatus();
  }
  queued_.insert(queued_.begin(), {ReadQuery::kControl,
                                   {sql::kShortenRead, {MillisecondsText(left)}, /*keep=*/true}});
  tickets_.insert(tickets_.begin(), Ticket{0});
  return absl::OkStatus();
}

absl::Status PgReadLink::RunQueued() {
  if (queued_.empty()) return absl::OkStatus();
  const absl::Status wanted = HeedPatience();
  const std::vector<ReadStatement> all = std::exchange(queued_, {});
  const std::vector<Ticket> tickets = std::exchange(tickets_, {});
  STEPWELL_RETURN_IF_ERROR(wanted);
  if (watch_) watch_(all);
  std::vector<PgStatement> sent;
  sent.reserve(all.size());
  for (const ReadStatement& each : all) sent.push_back(each.statement);
  STEPWELL_ASSIGN_OR_RETURN(std::vector<PgResult> results, Send(sent));
  STEPWELL_CHECK(results.size() == tickets.size());
  for (std::size_t i = 0; i < tickets.size(); ++i) {
    if (tickets[i] != 0) answers_[tickets[i]] = std::move(results[i]);
  }
  has_answered_ = true;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<PgResult>> PgReadLink::Send(const std::vector<PgStatement>& statements) {
  auto results = loan_->ExecAll(statements);
  if (names_leaves_ && SqlState(results.status()) == kUndefinedTable) {
    // In the first round trip leaves are named by a ledger of long ago.
    if (has_answered_) memory_.NoteLeafGone();
    if (!has_answered_) memory_.ForgetUsage();
    return absl::UnavailableError("read: a leaf was dropped meanwhile; ask again");
  }
  if (results.ok() || !IsStatementUnknown(results.status())) return results;
  // What was read already is of a snapshot that is gone.
  if (has_answered_) return absl::UnavailableError("read: begun behind a pooler; ask again");
  STEPWELL_RETURN_IF_ERROR(loan_->Rollback());
  return loan_->ExecAll(statements);
}

}  // namespace stepwell
