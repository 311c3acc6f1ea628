// MergeCopy: the rows that one slice of a merge makes, laid out for the leaves of their keep classes and
// counted for the ledger. Stands between PgMerger and COPY. Confined to one thread.
#pragma once

#include <cstdint>
#include <map>

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
  // All three outlive this.
  MergeCopy(const SeriesGroups& groups, MergeClasses& classes, UsageLedger& usage)
      : groups_(groups), classes_(classes), usage_(usage) {}

  // Rows and ticks. `index` of the stretch among those of its work; `place` without a class.
  void Add(RowPlace place, std::size_t index, const EncodedTicks& ticks);
  // Rollups, with their grid unless that is written already. `place` has the class.
  void AddRollup(const RowPlace& place, RollupHome home, const EncodedRollup& rollup,
                 bool with_grid);
  // Copies what was added, inside the caller's transaction.
  absl::Status Send(PgConnection& connection);

 private:
  struct Copies {
    RowCopy rows;
    RollupCopy rollups;
    RollupCopy rollups_that_wait;
  };
  Copies& CopiesOf(const RowPlace& place);
  void AddTicks(const RowPlace& place, const EncodedTicks& ticks);
  UsageKey KeyOf(const RowPlace& place, SeriesNo series_no) const;

  const SeriesGroups& groups_;
  MergeClasses& classes_;
  UsageLedger& usage_;
  std::map<std::int16_t, Copies> copies_;
};

}  // namespace stepwell
