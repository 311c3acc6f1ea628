// PgReadLink: the one place where statements of reads run, on a connection that is borrowed for one
// snapshot. Statements are queued and travel together when the answer of one is wanted. Each says which
// query it is, and a watch sees all of a round trip before it is sent: tests take the plans from there. Nothing is
// sent once the read's time is over, or nobody waits for it.
//
//   PgReadLink link(std::move(loan), watch);
//   const auto trial = link.Queue(ReadQuery::kTrial, sql::kReadTrial, {id});
//   const auto usage = link.Queue(ReadQuery::kUsage, sql::kReadUsage, {id});
//   STEPWELL_ASSIGN_OR_RETURN(const PgResult trial_row, link.Take(trial));   // one round trip for both
//
// Confined to one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/steady_time.h"
#include "storage/pg_connection.h"
#include "storage/pg_read_memory.h"
#include "storage/pg_reader_leaves.h"
#include "storage/pg_shelf.h"
#include "storage/read_patience.h"

namespace stepwell {

// Every query that a read may ask; tests ask for the plan of each.
enum class ReadQuery {
  kControl,  // begin, settings, fetch, close, the one row of masters: there is nothing to plan
  kTrialId,
  kTrial,
  kTrials,
  kWriters,
  kSeries,
  kGaps,
  kUsage,
  kRows,
  kNewestRows,
  kTicks,
  kRollups,
  kRollupGrids,
  kBatchSpans,
  kBatchesAround,
};
inline constexpr ReadQuery kReadQueryLast = ReadQuery::kBatchesAround;

// How PostgreSQL plans a statement: anew for its values, or once for all, by indexes alone. The latter is
// for texts that are asked again and again, and whose best plan is one whatever their values are.
enum class ReadPlan { kForValues, kOnce };

struct ReadStatement {
  ReadQuery query{};
  PgStatement statement = {};
};

// Gets the statements of one round trip, on the thread that reads. Null = nobody looks.
using ReadWatch = std::function<void(std::span<const ReadStatement>)>;

class PgReadLink {
 public:
  // Stands for the answer of one queued statement; 0 = none.
  using Ticket = std::int64_t;
  // No statement of a transaction runs longer.
  static constexpr absl::Duration kStatementMax = absl::Seconds(60);

  // `watch` and `memory` outlive the link.
  PgReadLink(PgShelf::Loan loan, const ReadWatch& watch, PgReadMemory& memory)
      : loan_(std::move(loan)), watch_(watch), memory_(memory), age_(memory.age()) {}
  PgReadLink(PgReadLink&&) = default;
  // Ends the transaction without waiting for it.
  ~PgReadLink();

  // The next statements are one transaction. None is sent after `deadline`, and each may run for as long as was left until
  // it at most a ReadPatience::kLookEach ago: what runs then ends soon, unless it is several that travel together.
  void Begin(SteadyTime deadline);
  // Of that transaction. Asked now and then between two round trips, unless the read is short: kCancelled.
  void Heed(std::function<bool()> cancelled) { patience_.Heed(std::move(cancelled)); }
  // The statement goes with the next round trip, in order, and not at all when there is none.
  Ticket Queue(ReadQuery query, SqlText sql, std::vector<PgParam> params = {},
               ReadPlan plan = ReadPlan::kForValues);
  // Likewise; nobody wants its answer.
  void PutOff(ReadQuery query, SqlText sql, std::vector<PgParam> params = {},
              ReadPlan plan = ReadPlan::kForValues);
  PgReadMemory& memory() const { return memory_; }
  // Of the memory before the transaction began: what it reads is noted with it.
  std::int64_t memory_age() const { return age_; }
  // For statements that may name leaves; kUnavailable is the answer where one is gone.
  LeafPlaces LeavesBy(const std::vector<LeafRange>& leaves);
  // The answer; a round trip for all that is queued where it is not there yet. The first statement that
  // fails ends those behind it. kDeadlineExceeded and kCancelled where it is not even asked any more. REQUIRES: not
  // taken before.
  absl::StatusOr<PgResult> Take(Ticket ticket);
  // Sends a statement at once, alone and outside of a transaction, where the connection has kept it already;
  // TakeAhead waits for its answer. False = it was not sent. REQUIRES: nothing is queued.
  bool SendAhead(ReadQuery query, const SqlText& sql);
  // REQUIRES: SendAhead was true, once.
  absl::StatusOr<PgResult> TakeAhead() { return loan_->TakeSent(); }
  // Nobody wants it any more.
  void Forget(Ticket ticket);
  absl::StatusOr<PgResult> RunOne(ReadQuery query, SqlText sql, std::vector<PgParam> params = {},
                                  ReadPlan plan = ReadPlan::kForValues) {
    return Take(Queue(query, std::move(sql), std::move(params), plan));
  }

 private:
  void Add(Ticket ticket, ReadQuery query, SqlText sql, std::vector<PgParam> params, ReadPlan plan);
  void EnterPlan(ReadPlan plan);
  // Before a round trip.
  absl::Status HeedPatience();
  absl::Status RunQueued();
  // Once more without kept statements where a pooler is in the way and nothing was read yet.
  absl::StatusOr<std::vector<PgResult>> Send(const std::vector<PgStatement>& statements);

  PgShelf::Loan loan_;
  const ReadWatch& watch_;
  PgReadMemory& memory_;
  const std::int64_t age_;
  std::vector<ReadStatement> queued_;
  std::vector<Ticket> tickets_;  // of queued_; 0 = nobody wants it
  std::map<Ticket, PgResult> answers_;
  Ticket last_ticket_ = 0;
  ReadPatience patience_;
  ReadPlan plan_ = ReadPlan::kForValues;  // that the transaction is set to
  bool has_answered_ = false;
  bool names_leaves_ = false;
};

}  // namespace stepwell
