// FoldStore: what turns heads into rows asks of the database. A fold writes recent rows and moves
// folded_sequence in one transaction; a merge moves recent rows into metrics. Both take a number of
// fold_numbers, so that readers can see heads and rows as one. What comes in bulk goes into metrics at once.
// Errors as in IngestStore.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/model.h"

namespace stepwell {

// All unfolded chunks of one writer, up to and including to_sequence.
struct WriterFold {
  TrialId trial_id{};
  WriterNo writer_no{};
  // folded_sequence must be this now; otherwise the whole fold is refused with kFailedPrecondition.
  std::uint64_t from_sequence_exclusive = 0;
  std::uint64_t to_sequence = 0;
  // Tables as they came; those of one tick group are joined into one ticks row.
  struct Part {
    std::int64_t received_time_us = 0;               // decides received_day
    const std::vector<TickTable>* tables = nullptr;  // outlives the call
    // Of the chunk that the tables came in; ascending. 0 = unknown: then the writer's parts stand
    // or fall together, should the database refuse one.
    std::uint64_t last_sequence = 0;
  };
  std::vector<Part> parts;
  // Holes among these sequences, declared with the fold.
  std::vector<Gap> gaps = {};
};

struct FoldResult {
  FoldNo fold_no{};  // the greatest, where it took several
  std::int64_t row_count = 0;
  std::int64_t sample_count = 0;
  // Samples that the database refused; a gap of cause kRejected is declared for them.
  std::int64_t refused_sample_count = 0;
};

struct MergeLimits {
  // Only folds up to this one may be merged: no live reader's pin lies below it.
  FoldNo fold_no_max{};
  // The stretch of one writer, tick group and received day is ripe when it has so many ticks, when
  // its oldest part was received so long ago (a slow one, with fewer than kSlowTicksPerHour ticks,
  // waits 24 times as long, or until that long after its day), or when its writer is not open.
  std::int32_t ripe_tick_count = 3600;
  std::int64_t ripe_age_us = 3'600'000'000;
  // What "so long ago" counts from; 0 = this machine's clock.
  std::int64_t now_us = 0;
  // Rows of recent that one call takes, more or less, in tens of milliseconds: at least those of one series on
  // all rows of ticks that it works on, and where narrow rollups are to be joined theirs.
  std::int32_t rows_max = 2000;
  // Rows of ticks that are worked on at a time; an hour of folds makes some hundreds. The rest of the stretch is the next
  // call's. With this many ticks that are a row each, and have rollups each, a call takes some hundred milliseconds.
  std::int32_t ticks_rows_max = 2000;
  // Stretches that are picked at a time.
  std::int32_t picks_max = 1000;
};

struct MergeResult {
  std::int64_t recent_rows_taken = 0;
  std::int64_t metrics_rows_made = 0;
  bool more = false;  // rows_max stopped it
};

class FoldStore {
 public:
  virtual ~FoldStore() = default;

  // One transaction for all of `folds`. An unknown COMMIT is resolved by reading back. What the
  // database refuses is halved, in a transaction for each half, until the chunk that it refuses
  // stands alone; that one is given up. An error after some halves were stored leaves them stored.
  [[nodiscard]] virtual absl::StatusOr<FoldResult> Fold(std::int64_t owner_epoch,
                                                        const std::vector<WriterFold>& folds) = 0;
  // The same for a trial that comes in bulk (HoldsBulk): stretches of kBulkTicks and more become rows of leaves at
  // once, with their rollups, as if folded and merged in one transaction; the rest waits in recent. No value: nothing
  // is stored, for a leaf refuses it or a merge of the trial is half way, and Fold is to take it. Days before
  // `first_open_day` get no more samples.
  // REQUIRES: `folds` are of one trial, and nobody reads it meanwhile who has heads of before: rows of leaves do
  // not say of which fold they are. kUnknown = nobody knows whether it is stored: heads of before must not be read
  // beside rows any more.
  [[nodiscard]] virtual absl::StatusOr<std::optional<FoldResult>> FoldBulk(
      std::int64_t owner_epoch, const std::vector<WriterFold>& folds,
      std::int32_t first_open_day) = 0;
  // One transaction; safe at any kill. REQUIRES: nobody has heads of what `limits` lets it merge; of a fold that failed
  // somebody may, for it may be stored.
  [[nodiscard]] virtual absl::StatusOr<MergeResult> Merge(std::int64_t owner_epoch,
                                                          const MergeLimits& limits) = 0;
  // Next number of fold_numbers: larger than that of every fold before. Thread-safe: a take-over asks
  // while a fold of before may still be under way.
  [[nodiscard]] virtual absl::StatusOr<FoldNo> NextFoldNo() = 0;
  // Leaves of metrics and ticks for the days around now (yesterday ... in two days), by CREATE +
  // ATTACH under a 20 ms lock_timeout. Idempotent; kUnavailable = come again.
  [[nodiscard]] virtual absl::Status AttachLeaves(std::int64_t now_us) = 0;

  // The journal ring. Commit writes into the current segment; Advance makes the next one current
  // if it is empty or can be emptied now. `all_folded_before_us`: every chunk received before then
  // is folded, so segments whose last row is older may be truncated. Never waits over 20 ms for a lock;
  // goes through all rows of what it empties, which of a segment that grew behind somebody's lock may take minutes.
  // kAborted, here and below, when `owner_epoch` is not that of the masters row, if there is one.
  [[nodiscard]] virtual absl::Status RecycleJournal(std::int64_t owner_epoch,
                                                    std::int64_t all_folded_before_us) = 0;
  // Likewise for the ring of recent: truncates segments that hold no live row and that no older
  // snapshot can still see. And begins to analyze leaves that merges have filled, beside everything else.
  [[nodiscard]] virtual absl::Status RecycleRecent(std::int64_t owner_epoch) = 0;
};

}  // namespace stepwell
