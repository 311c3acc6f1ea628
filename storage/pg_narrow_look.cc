#include "storage/pg_narrow_look.h"

#include <algorithm>
#include <cstddef>

#include "base/status_macros.h"
#include "storage/pg_array.h"
#include "storage/pg_param.h"
#include "storage/rollup.h"
#include "storage/rollup_ring.h"
#include "storage/sql_text.h"

namespace stepwell {
namespace {

// Some dozens of a writer are usual.
constexpr std::int64_t kRowsPerWriter = 64;

// $1 trial, $2 writers, $3 day, $4 fewer buckets than this, $5 limit.
SqlText LookSql(std::int32_t received_day) {
  return SqlCat(
      {"select writer_no, keep_class, step_seconds, first_series_no, first_time_us, "
       "last_time_us, bucket_count from ",
       RollupSegment("rollup_ticks", RollupSegmentOf(received_day)),
       " where trial_id = $1 and writer_no = any($2) and received_day = $3 and "
       "bucket_count < $4 and first_series_no is not null limit $5"});
}

}  // namespace

absl::StatusOr<PgNarrowLook> PgNarrowLook::Take(PgConnection& connection, TrialId trial_id,
                                                std::int32_t received_day,
                                                const std::vector<WriterNo>& writer_nos) {
  std::vector<std::int32_t> numbers;
  for (const WriterNo writer_no : writer_nos) numbers.push_back(Value(writer_no));
  const std::int64_t limit = kRowsPerWriter * static_cast<std::int64_t>(numbers.size());
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult found,
      connection.ExecKept(LookSql(received_day),
                          {Value(trial_id), PgArray(numbers), PgDate{received_day},
                           static_cast<std::int32_t>(kNarrowRollupBuckets), limit}));
  PgNarrowLook look;
  look.is_whole_ = found.row_count() < limit;
  for (int i = 0; i < found.row_count(); ++i) {
    Row row;
    row.keep_class = static_cast<std::int16_t>(found.Int32(i, 1));
    row.step_seconds = static_cast<std::int16_t>(found.Int32(i, 2));
    row.first_series_no = found.Int32(i, 3);
    // A damaged one is not joined.
    if (std::find(kRollupSteps.begin(), kRollupSteps.end(), row.step_seconds) ==
        kRollupSteps.end()) {
      continue;
    }
    const std::int64_t first_time_us = found.Int64(i, 4);
    const std::int64_t last_time_us = found.Int64(i, 5);
    row.piece = {.first_time_us = first_time_us,
                 .last_time_us = last_time_us,
                 .first_bucket = RollupBucketOf(first_time_us, row.step_seconds),
                 .last_bucket = RollupBucketOf(last_time_us, row.step_seconds),
                 .bucket_count = found.Int32(i, 6)};
    look.rows_[WriterNo{found.Int32(i, 0)}].push_back(row);
  }
  return look;
}

bool PgNarrowLook::MayJoin(WriterNo writer_no, std::int16_t keep_class,
                           const std::vector<std::int32_t>& series_nos,
                           const std::vector<StretchRollups>& stretches) const {
  if (!is_whole_) return true;
  const auto of_writer = rows_.find(writer_no);
  if (of_writer == rows_.end()) return false;
  for (std::size_t step_index = 0; step_index < kRollupSteps.size(); ++step_index) {
    std::vector<RollupPiece> narrow;
    for (const Row& row : of_writer->second) {
      const bool is_beside =
          row.keep_class == keep_class && row.step_seconds == kRollupSteps[step_index] &&
          std::binary_search(series_nos.begin(), series_nos.end(), row.first_series_no);
      if (is_beside) narrow.push_back(row.piece);
    }
    if (narrow.empty()) continue;
    const auto planned = PlanRollups(RollupPiecesOf(stretches, step_index), narrow);
    const bool joins = std::any_of(planned.begin(), planned.end(),
                                   [](const PlannedRollup& row) { return !row.narrow.empty(); });
    if (joins) return true;
  }
  return false;
}

}  // namespace stepwell
