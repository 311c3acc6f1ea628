// PgRollupJoiner: the rows of rollups that one stretch of merge work makes. Its stretches are joined with
// each other and with narrow rows that earlier merges left beside the leaf (RollupRing), as RollupPlan says;
// what is full then goes into the leaf, what is not waits beside it. Which grids take part is decided once, before the first slice of the
// work's series; each slice takes the narrow rows of its series and writes the joined ones, in one
// transaction. Stands between PgMerger or PgBulkWriter and MergeCopy. Confined to the folder's thread.
//
// What holds at each commit: each sample of a merged row is in exactly one row of rollups of each step,
// in the leaf or beside it, each row has its grid in the same place, and the ledger says their bytes.
// Nothing is taken out of a leaf. A merge that was cut short leaves grids with
// the narrow rows of the series that are left; the next one joins them.
//
// Order of locks: rows of rollups, then lines of the ledger, as sweeps take them. So a transaction takes all of
// its rows before it holds lines: a merge has one slice that joins, and nothing before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/merge_classes.h"
#include "storage/merge_plan.h"
#include "storage/pg_connection.h"
#include "storage/pg_merge_copy.h"
#include "storage/pg_narrow_look.h"
#include "storage/pg_param.h"
#include "storage/rollup_ring.h"
#include "storage/row_place.h"
#include "storage/series_groups.h"
#include "storage/usage_ledger.h"

namespace stepwell {

class PgRollupJoiner {
 public:
  enum class NarrowRows { kJoin, kLeave };
  // Of a day that is over, what is made goes into the leaf, however narrow: hardly anything comes to join.
  enum class Day { kGoesOn, kIsOver };
  struct Options {
    NarrowRows narrow_rows = NarrowRows::kJoin;
    Day day = Day::kGoesOn;
    // Of the day, taken in the same transaction, with the writer among its writers; null = its narrow rows are read.
    const PgNarrowLook* look = nullptr;
  };

  PgRollupJoiner() = default;
  // One statement per class of `classes`, none where a look says that nothing is joined, some more where narrow rows are
  // to be joined. `place` without class and number; `stretches` are those of the work, without series.
  static absl::StatusOr<PgRollupJoiner> Plan(PgConnection& connection, const RowPlace& place,
                                             const MergeClasses& classes,
                                             const std::vector<StretchRollups>& stretches,
                                             Options options);

  // Whether slices take narrow rows away.
  bool joins() const { return narrow_count_ > 0; }
  // Rows that a slice takes away for a series, at most.
  std::size_t narrow_count() const { return narrow_count_; }
  // Series that have narrow rows to be joined, ascending: they are part of the work.
  const std::vector<SeriesNo>& narrow_series() const { return narrow_series_; }

  // Deletes the narrow rows of these series, for CopyInto. kDataLoss where one cannot be decoded.
  absl::Status TakeRows(PgConnection& connection, const std::vector<std::int32_t>& series_nos,
                        const SeriesGroups& groups, UsageLedger& usage);
  // After the last TakeRows of the transaction, before its ledger: from here on no sweep gives the leaf up
  // before the transaction has ended. kUnavailable when one gave the rows up meanwhile.
  absl::Status HoldLines(PgConnection& connection);
  // What the slice makes of them and of its own rollups. `tick_nos` are those of the stretches.
  void CopyInto(const std::vector<MergedStretch>& merged, const std::vector<std::int64_t>& tick_nos,
                const MergeClasses& classes, MergeCopy& copy);
  // After the rows of all series were taken: the grids of the narrow rows.
  absl::Status DropGrids(PgConnection& connection, const SeriesGroups& groups, UsageLedger& usage);

 private:
  // A grid with narrow rows; its series are those of the slice.
  struct Narrow {
    std::int64_t tick_no = 0;
    Rollup rollup;
  };
  // Rows to be, on one grid.
  struct Row {
    std::int16_t keep_class = 0;
    RollupHome home = RollupHome::kLeaf;
    std::size_t step_index = 0;
    std::size_t first_stretch = 0;
    std::size_t stretch_count = 0;
    std::vector<Narrow> narrow;
    bool has_grid = false;  // written by an earlier slice
  };

  explicit PgRollupJoiner(const RowPlace& place) : place_(place) {}
  absl::StatusOr<std::vector<Narrow>> ReadNarrow(PgConnection& connection, std::int16_t keep_class,
                                                 const std::vector<std::int32_t>& series_nos);
  void PlanClass(std::int16_t keep_class, const std::vector<StretchRollups>& stretches,
                 std::vector<Narrow> narrow, Day day);
  static RollupHome HomeOf(const Row& row, const std::vector<StretchRollups>& stretches, Day day);
  absl::Status FindSeries(PgConnection& connection);
  absl::Status TakeRowsOf(PgConnection& connection, const std::vector<std::int32_t>& series_nos,
                          const SeriesGroups& groups, Row& row, UsageLedger& usage);
  // Of the statements about the narrow grids of `row`, and about the rows on them.
  std::vector<PgParam> GridParams(const Row& row) const;
  std::vector<PgParam> RowParams(const Row& row) const;

  RowPlace place_;
  std::vector<Row> rows_;
  std::size_t narrow_count_ = 0;
  std::vector<SeriesNo> narrow_series_;
};

}  // namespace stepwell
