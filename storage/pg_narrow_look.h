// PgNarrowLook: how wide the narrow rows of rollups are that wait beside the leaves of a day, of all writers of a fold,
// without what they hold: enough to see that none of them is to be joined yet, which is so most times. One statement for
// hundreds of writers, of each of whom PgRollupJoiner would ask for whole grids. What it says is a hint: rows that went
// since are not found by who reads them, and rows that came since wait for the next fold. A value.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/model.h"
#include "storage/pg_connection.h"
#include "storage/rollup_plan.h"
#include "storage/rollup_stretches.h"

namespace stepwell {

class PgNarrowLook {
 public:
  static absl::StatusOr<PgNarrowLook> Take(PgConnection& connection, TrialId trial_id,
                                           std::int32_t received_day,
                                           const std::vector<WriterNo>& writer_nos);

  // Whether one of the writer's rows of this class might be joined with `stretches` of these series, which ascend. True
  // where there were more rows than a look takes.
  bool MayJoin(WriterNo writer_no, std::int16_t keep_class,
               const std::vector<std::int32_t>& series_nos,
               const std::vector<StretchRollups>& stretches) const;

 private:
  struct Row {
    std::int16_t keep_class = 0;
    std::int16_t step_seconds = 0;
    std::int32_t first_series_no = 0;
    RollupPiece piece;
  };

  bool is_whole_ = true;
  std::map<WriterNo, std::vector<Row>> rows_;
};

}  // namespace stepwell
