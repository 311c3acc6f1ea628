// PgReadLink: the one place where statements of reads run, on a connection that is borrowed for one
// snapshot. Each statement says which query it is, and a watch sees all of a round trip before it is
// sent: tests take the plans from there, and count.
//
//   PgReadLink link(std::move(loan), watch);
//   STEPWELL_ASSIGN_OR_RETURN(auto results, link.Run({{ReadQuery::kTrial, sql::kReadTrial, {id}},
//                                                     {ReadQuery::kUsage, sql::kReadUsage, {id}}}));
//
// Confined to one thread at a time.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/pg_connection.h"
#include "storage/pg_shelf.h"

namespace stepwell {

// Every query that a read may ask; tests ask for the plan of each.
enum class ReadQuery {
  kControl,  // begin, fetch, close: there is nothing to plan
  kTrialId,
  kTrial,
  kTrials,
  kWriters,
  kSeries,
  kGaps,
  kGapSums,
  kUsage,
  kRows,
  kNewestRows,
  kTicks,
  kRollups,
  kRollupGrids,
  kBatchSpans,
};
inline constexpr ReadQuery kReadQueryLast = ReadQuery::kBatchSpans;

struct ReadStatement {
  ReadQuery query{};
  PgStatement statement = {};
};

// Gets the statements of one round trip, on the thread that reads. Null = nobody looks.
using ReadWatch = std::function<void(std::span<const ReadStatement>)>;

class PgReadLink {
 public:
  // `watch` outlives the link.
  PgReadLink(PgShelf::Loan loan, const ReadWatch& watch) : loan_(std::move(loan)), watch_(watch) {}

  // In one round trip, in order; one result each. The first that fails ends them.
  absl::StatusOr<std::vector<PgResult>> Run(std::vector<ReadStatement> statements);
  absl::StatusOr<PgResult> RunOne(ReadQuery query, std::string sql, std::vector<PgParam> params);
  // Goes ahead of the next round trip, and not at all when there is none: what it changes must matter to
  // later statements of this transaction alone.
  void PutOff(std::string sql, std::vector<PgParam> params = {});

 private:
  PgShelf::Loan loan_;
  const ReadWatch& watch_;
  std::vector<ReadStatement> put_off_;
};

}  // namespace stepwell
