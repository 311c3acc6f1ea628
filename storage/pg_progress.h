// Where writers stand: the newest of stepwell.writers and of progress_0..7, the segments of progress that
// lie beside those of the journal. Functions for PgWriter, PgFolder, PgIngestStore and the journal.
//
// The invariant: of each writer, committed_sequence of its row or of a row of progress is the newest that
// was ever committed, with its checksum, and none is beyond it. So
//  - a commit inserts into the segment of progress whose journal segment it copies into, and rewrites no row
//    of writers: versions of those nobody could remove while anybody keeps a transaction open;
//  - what a segment tells is carried into writers, in a transaction that is committed before the one that
//    truncates it, and this one truncates the journal's segment with it, after it has counted both under
//    its lock: what came between is not lost;
//  - a writer that opens, closes or is folded takes its progress along, since its row is written anyway: who
//    is not open has all of it in his row.
// What it survives:
//  - a kill between commit, fold, carrying and truncation: each is one transaction, and carrying twice, or
//    without a truncation, changes no maximum;
//  - a full ring: commits go on in the current segment, which grows;
//  - TRUNCATE, which empties a table under older snapshots, too. One statement in READ COMMITTED that names
//    both holds locks on all of its tables before it takes its snapshot: it sees a segment as it was, or
//    truncated and what was carried before. Who reads with an older snapshot (questions, a dump) sees too
//    little: questions read writers alone, which is never behind what is folded, and ask heads for the rest;
//  - a row that was waited for: the statement that waited sees the newest of the row and progress of before.
//    Who decides by progress locks rows with one statement and reads with the next;
//  - a second process that commits, whatever it is: see ProgressBook and stepwell.progress_book.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "storage/ingest_store.h"
#include "storage/pg_connection.h"
#include "storage/pg_link.h"

namespace stepwell {

using ProgressMap = std::map<std::pair<TrialId, WriterNo>, WriterProgress>;

// Rows of a statement whose columns are those of STEPWELL_WRITER_PROGRESS.
std::vector<WriterProgress> ProgressRows(const PgResult& result);
ProgressMap ProgressMapOf(const PgResult& result);

using WriterKeys = std::vector<std::pair<TrialId, WriterNo>>;

// One commit of a writer, as a row of progress.
struct ProgressRow {
  TrialId trial_id{};
  WriterNo writer_no{};
  std::uint64_t committed_sequence = 0;
  std::uint32_t last_crc32c = 0;
};
// Into one segment, inside the caller's transaction, which holds the writers' rows.
absl::Status InsertProgress(PgConnection& connection, int segment,
                            const std::vector<ProgressRow>& rows);

// The table of a segment. REQUIRES: 0 <= segment < JournalRing::kSegmentCount.
SqlText ProgressTable(int segment);

// Brings the writers' rows up to what the segment tells. O(rows of it).
absl::Status CarryProgress(PgConnection& connection, int segment);

// What one statement sees; absent writers are absent.
absl::StatusOr<ProgressMap> ReadProgressOf(PgConnection& connection, const WriterKeys& writers);

// The last word: waits for transactions that hold these writers' rows, such as one whose COMMIT is
// in doubt. A transaction of its own that ends in a rollback, so that it leaves nothing to be
// flushed or replicated.
absl::StatusOr<ProgressMap> ReadSettledProgress(PgConnection& connection,
                                                const WriterKeys& writers);

// The same after a COMMIT in doubt: on fresh connections, until one answers or `timeout` is over.
// An error is CommitUnknown.
absl::StatusOr<ProgressMap> ReadBackProgress(PgLink& link, const WriterKeys& writers,
                                             absl::Duration timeout);

}  // namespace stepwell
