#include "storage/pg_read_link.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"

namespace stepwell {

PgReadLink::~PgReadLink() {
  if (loan_.has_connection()) loan_->RollbackLater();
}

PgReadLink::Ticket PgReadLink::Queue(ReadQuery query, std::string sql,
                                     std::vector<PgParam> params) {
  queued_.push_back({query, {std::move(sql), std::move(params)}});
  tickets_.push_back(++last_ticket_);
  return last_ticket_;
}

void PgReadLink::PutOff(ReadQuery query, std::string sql, std::vector<PgParam> params) {
  queued_.push_back({query, {std::move(sql), std::move(params)}});
  tickets_.push_back(0);
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

absl::Status PgReadLink::RunQueued() {
  const std::vector<ReadStatement> all = std::exchange(queued_, {});
  const std::vector<Ticket> tickets = std::exchange(tickets_, {});
  if (all.empty()) return absl::OkStatus();
  if (watch_) watch_(all);
  std::vector<PgStatement> sent;
  sent.reserve(all.size());
  for (const ReadStatement& each : all) sent.push_back(each.statement);
  STEPWELL_ASSIGN_OR_RETURN(std::vector<PgResult> results, loan_->ExecAll(sent));
  STEPWELL_CHECK(results.size() == tickets.size());
  for (std::size_t i = 0; i < tickets.size(); ++i) {
    if (tickets[i] != 0) answers_[tickets[i]] = std::move(results[i]);
  }
  return absl::OkStatus();
}

}  // namespace stepwell
