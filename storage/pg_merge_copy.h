// MergeCopy: the rows that one slice of a merge makes, or a fold into leaves of all of its writers, laid out for the
// leaves of their keep classes and counted for the ledger. They go with one COPY for each table: what a COPY costs
// before its first row is as much as some dozens of rows do. Stands between PgMerger or PgBulkWriter and COPY. Confined to
// one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "storage/encoded_rollup.h"
#include "storage/encoded_ticks.h"
#include "storage/merge_classes.h"
#include "storage/pg_rollup_copy.h"
#include "storage/pg_row_copy.h"
#include "storage/series_groups.h"
#include "storage/usage_ledger.h"

namespace stepwell {

class MergeCopy {
 public:
  // Both outlive this.
  MergeCopy(const SeriesGroups& groups, UsageLedger& usage) : groups_(groups), usage_(usage) {}

  // Rows and ticks, of a work of these classes. `index` of the stretch among those of its work; `place` without a class.
  void Add(RowPlace place, std::size_t index, const EncodedTicks& ticks, MergeClasses& classes);
  // Rollups, with their grid unless that is written already. `place` has the class.
  void AddRollup(const RowPlace& place, RollupHome home, const EncodedRollup& rollup,
                 bool with_grid, const MergeClasses& classes);
  // Of what was added and is not sent yet.
  std::size_t bytes() const;
  // Copies what was added, inside the caller's transaction; empty afterwards.
  absl::Status Send(PgConnection& connection);

 private:
  struct Copies {
    RowCopy rows;
    RollupCopy rollups;
    RollupCopy rollups_that_wait;
  };
  Copies& CopiesOf(const RowPlace& place);
  void AddTicks(const RowPlace& place, const EncodedTicks& ticks, const MergeClasses& classes);
  UsageKey KeyOf(const RowPlace& place, SeriesNo series_no) const;

  const SeriesGroups& groups_;
  UsageLedger& usage_;
  std::map<std::pair<std::int16_t, std::int32_t>, Copies> copies_;  // by class and received day
};

}  // namespace stepwell
