#include "storage/pg_progress.h"

#include "base/status_macros.h"
#include "storage/pg_array.h"

namespace stepwell {

std::vector<WriterProgress> ProgressRows(const PgResult& result) {
  std::vector<WriterProgress> rows;
  for (int row = 0; row < result.row_count(); ++row) {
    rows.push_back({.trial_id = TrialId{result.Int64(row, 0)},
                    .writer_no = WriterNo{result.Int32(row, 1)},
                    .generation = static_cast<std::uint64_t>(result.Int64(row, 2)),
                    .committed_sequence = static_cast<std::uint64_t>(result.Int64(row, 3)),
                    .folded_sequence = static_cast<std::uint64_t>(result.Int64(row, 4)),
                    .state = static_cast<WriterState>(result.Int32(row, 5))});
  }
  return rows;
}

absl::StatusOr<ProgressMap> ReadProgressOf(
    PgConnection& connection, const char* statement,
    const std::vector<std::pair<TrialId, WriterNo>>& writers) {
  std::vector<std::int64_t> trials;
  std::vector<std::int32_t> writer_nos;
  for (const auto& [trial_id, writer_no] : writers) {
    trials.push_back(Value(trial_id));
    writer_nos.push_back(Value(writer_no));
  }
  STEPWELL_ASSIGN_OR_RETURN(const PgResult result,
                            connection.Exec(statement, {PgArray(trials), PgArray(writer_nos)}));
  ProgressMap stored;
  for (const WriterProgress& row : ProgressRows(result)) {
    stored.emplace(std::pair(row.trial_id, row.writer_no), row);
  }
  return stored;
}

}  // namespace stepwell
