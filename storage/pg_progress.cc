#include "storage/pg_progress.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/backoff.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "base/steady_time.h"
#include "storage/journal_ring.h"
#include "storage/pg_array.h"
#include "storage/pg_error.h"
#include "storage/pg_sql.h"

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

namespace {

absl::StatusOr<PgResult> Ask(PgConnection& connection, const SqlText& statement,
                             const WriterKeys& writers) {
  std::vector<std::int64_t> trials;
  std::vector<std::int32_t> writer_nos;
  for (const auto& [trial_id, writer_no] : writers) {
    trials.push_back(Value(trial_id));
    writer_nos.push_back(Value(writer_no));
  }
  return connection.Exec(statement, {PgArray(trials), PgArray(writer_nos)});
}

absl::StatusOr<ProgressMap> Settle(PgConnection& connection, const WriterKeys& writers) {
  STEPWELL_RETURN_IF_ERROR(Ask(connection, sql::kSettleWriterPairs, writers).status());
  return ReadProgressOf(connection, writers);
}

}  // namespace

ProgressMap ProgressMapOf(const PgResult& result) {
  ProgressMap stored;
  for (const WriterProgress& row : ProgressRows(result)) {
    stored.emplace(std::pair(row.trial_id, row.writer_no), row);
  }
  return stored;
}

absl::StatusOr<ProgressMap> ReadProgressOf(PgConnection& connection, const WriterKeys& writers) {
  STEPWELL_ASSIGN_OR_RETURN(const PgResult result, Ask(connection, sql::kReadWriterPairs, writers));
  return ProgressMapOf(result);
}

SqlText ProgressTable(int segment) {
  STEPWELL_CHECK(segment >= 0 && segment < JournalRing::kSegmentCount);
  return SqlCat({"stepwell.progress_", SqlInteger(segment)});
}

namespace {

// Put together once: each commit inserts.
const SqlText& InsertSql(int segment) {
  static const auto texts = [] {
    std::array<SqlText, JournalRing::kSegmentCount> made;
    for (int i = 0; i < JournalRing::kSegmentCount; ++i) {
      made[static_cast<std::size_t>(i)] =
          SqlCat({"insert into ", ProgressTable(i), sql::kIntoProgress});
    }
    return made;
  }();
  return texts.at(static_cast<std::size_t>(segment));
}

}  // namespace

absl::Status InsertProgress(PgConnection& connection, int segment,
                            const std::vector<ProgressRow>& rows) {
  if (rows.empty()) return absl::OkStatus();
  std::vector<std::int64_t> trials, sequences, crcs;
  std::vector<std::int32_t> writer_nos;
  for (const ProgressRow& row : rows) {
    trials.push_back(Value(row.trial_id));
    writer_nos.push_back(Value(row.writer_no));
    sequences.push_back(static_cast<std::int64_t>(row.committed_sequence));
    crcs.push_back(row.last_crc32c);
  }
  return connection
      .ExecKept(InsertSql(segment),
                {PgArray(trials), PgArray(writer_nos), PgArray(sequences), PgArray(crcs)})
      .status();
}

absl::Status CarryProgress(PgConnection& connection, int segment) {
  return connection.Exec(SqlFill(sql::kCarryProgress, ProgressTable(segment))).status();
}

absl::StatusOr<ProgressMap> ReadSettledProgress(PgConnection& connection,
                                                const WriterKeys& writers) {
  STEPWELL_RETURN_IF_ERROR(connection.Begin());
  absl::StatusOr<ProgressMap> stored = Settle(connection, writers);
  STEPWELL_RETURN_IF_ERROR(connection.Rollback());
  return stored;
}

absl::StatusOr<ProgressMap> ReadBackProgress(PgLink& link, const WriterKeys& writers,
                                             absl::Duration timeout) {
  Backoff backoff({.first = absl::Milliseconds(20), .longest = absl::Seconds(1)});
  const SteadyTime deadline = SteadyTime::Now() + timeout;
  while (true) {
    link.Drop();
    const auto connection = link.Get();
    absl::StatusOr<ProgressMap> stored = connection.ok()
                                             ? ReadSettledProgress(**connection, writers)
                                             : absl::StatusOr<ProgressMap>(connection.status());
    if (stored.ok()) return stored;
    if (deadline.HasPassed() || link.is_cut()) {
      return CommitUnknown(absl::StrCat("read back: ", stored.status().message()));
    }
    absl::SleepFor(backoff.NextDelay());
  }
}

}  // namespace stepwell
