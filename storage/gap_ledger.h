// GapLedger: keeps known holes few. A gap that goes on where the last one of the same writer, cause,
// group and reason ended is extended in place; past kGapRowsMax rows of one writer and cause the
// newest row takes everything. A core: PgWriter reads the tails and writes the changes; the fake
// store uses it as it is. Thread-compatible.
//
//   GapLedger ledger;
//   ledger.AddStored(trial, gap_no, gap);           // what the table holds that may go on
//   ledger.SetRowCount(trial, writer, cause, n);
//   ledger.Note(trial, gap);
//   for (const GapChange& change : ledger.TakeChanges()) ...
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "storage/model.h"

namespace stepwell {

inline constexpr std::int64_t kGapRowsMax = 1000;
// Two gaps without sequences this near are one that goes on.
inline constexpr std::int64_t kGapOngoingUs = 60'000'000;

// The row as it must be afterwards. gap_no 0 = a new row.
struct GapChange {
  TrialId trial_id{};
  std::int64_t gap_no = 0;
  Gap gap;
};

// True when `next` continues `known`, by sequence or, where neither has one, by time.
bool GapGoesOn(const Gap& known, const Gap& next);
// `known` with what `next` adds.
void ExtendGap(Gap& known, const Gap& next);

class GapLedger {
 public:
  // In ascending order of gap_no.
  void AddStored(TrialId trial_id, std::int64_t gap_no, const Gap& gap);
  void SetRowCount(TrialId trial_id, WriterNo writer_no, GapCause cause, std::int64_t row_count);
  void Note(TrialId trial_id, const Gap& gap);
  // Rows to be inserted or updated, in the order in which they were first touched.
  std::vector<GapChange> TakeChanges();

 private:
  struct Row {
    std::int64_t gap_no = 0;
    Gap gap;
    bool touched = false;
    std::int64_t order = 0;
  };
  using Words = std::pair<std::string, std::string>;  // group and reason
  struct Rows {
    std::int64_t row_count = 0;
    std::vector<Row> rows;
    // Where in `rows`, ascending. Of thousands of gaps each may say something else.
    absl::flat_hash_map<Words, std::vector<std::size_t>> places;
  };
  static void Add(Rows& rows, Row row);
  // Null where `gap` goes on from none.
  static Row* FindBefore(Rows& rows, const Gap& gap);
  static Row& RowFor(Rows& rows, const Gap& gap);

  std::map<std::tuple<TrialId, WriterNo, GapCause>, Rows> rows_;
  std::int64_t touched_count_ = 0;
};

}  // namespace stepwell
