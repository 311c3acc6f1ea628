// The journal's tables: rows in, unfolded rows out, folded segments emptied. Functions over a
// connection; JournalRing remembers what they found. PgWriter writes, PgIngestStore replays, the
// folder's recycler truncates.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/journal_ring.h"
#include "storage/journal_rows.h"
#include "storage/pg_connection.h"

namespace stepwell {

// A page, a value or an index that will never be read again, as opposed to a disk that does not answer now
// (IsUnreadable says that of both, but of an index), and to what a caller's function returns.
bool IsDamage(const absl::Status& status);

// Copies `rows` into one segment, inside the caller's transaction. Returns the bytes they take.
// `before_send` is called once the rows are built; its error ends the copy.
absl::StatusOr<std::int64_t> CopyJournalRows(PgConnection& connection, int segment,
                                             std::int64_t received_time_us,
                                             const std::vector<JournalRowPlan>& rows,
                                             const std::function<absl::Status()>& before_send);

// Looks at its first and last pages: the count of rows is one for each page, the newest time as good as that. A
// segment where these cannot be read is told as damaged, and logged.
absl::StatusOr<JournalSegment> ReadJournalSegment(PgConnection& connection, int segment);
// All of them.
absl::StatusOr<std::array<JournalSegment, JournalRing::kSegmentCount>> ReadJournalSegments(
    PgConnection& connection);

// Something of the segment could not be read or written.
void LogDamagedSegment(int segment, const absl::Status& why);

// As IngestStore::ReadUnfoldedJournal. A transaction with a cursor for each segment; where PostgreSQL cannot
// read a page or a value, the segment is read again payload by payload, and then page by page. Carries all
// progress first.
absl::Status ReadUnfoldedRows(PgConnection& connection,
                              const std::function<absl::Status(JournalRow)>& row);

// Truncates the segment, and that of progress beside it, if every sequence in it is folded. False: it is
// not, or somebody reads a table of the two (a backup, an open psql). kAborted when another master owns
// the database. Never waits over 20 ms for a lock; while it looks at all rows only writers of the segment wait,
// of which there are none.
absl::StatusOr<bool> TruncateIfFolded(PgConnection& connection, int segment,
                                      std::int64_t owner_epoch);

}  // namespace stepwell
