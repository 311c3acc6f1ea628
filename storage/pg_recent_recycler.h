// PgRecentRecycler: keeps the ring of recent_0..3 turning: empties what merges have left over,
// truncates segments that nobody can still see rows in, and moves folds to the next one. A segment
// with a page that the server cannot read is left as it is, and the ring goes on without it. Confined
// to the folder's thread.
#pragma once

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/pg_connection.h"
#include "storage/pg_vacuum.h"
#include "storage/recent_ring.h"

namespace stepwell {

class PgRecentRecycler {
 public:
  // `ring` outlives this. `vacuum`: the connection that VACUUM has for itself.
  PgRecentRecycler(RecentRing& ring, PgConnection::Options vacuum)
      : ring_(ring), vacuum_(std::move(vacuum)) {}

  // Each page of all segments, as after something could not be read, or of rows of values only the first
  // that holds one.
  enum class Look { kQuick, kWhole };
  // What the tables hold, at start and after a take-over: the segment with the newest fold becomes
  // the current one. Fails for what cannot be read where that is in each of them.
  absl::Status Start(PgConnection& connection, Look look);
  // One round; never waits over 20 ms for a lock. kAborted when another master owns the database.
  absl::Status Recycle(PgConnection& connection, std::int64_t owner_epoch, std::int64_t now_us);

 private:
  // Its newest fold, -1 = none that is known.
  absl::StatusOr<std::int64_t> ReadSegment(PgConnection& connection, Look look, int i);
  // OK where the rest can go on without it.
  absl::Status LeaveDamaged(int segment, const absl::Status& why);
  absl::StatusOr<bool> IsEmpty(PgConnection& connection, int segment);
  // Of a segment that is empty and not current: since when it is, and will be until it is the current one.
  // Nothing is noted while somebody is writing to it.
  absl::Status NoteEmptied(PgConnection& connection, int segment);
  absl::StatusOr<bool> SeenByOlderSnapshot(PgConnection& connection, int segment);
  // It stays as it is where a snapshot may see rows of it, or somebody holds a lock.
  absl::Status TruncateIfUnseen(PgConnection& connection, std::int64_t owner_epoch, int segment);
  absl::Status Advance(PgConnection& connection, std::int64_t owner_epoch);
  // True once a VACUUM of the segment has ended; begins it where none has.
  bool IsVacuumed(int segment);
  // Some rows of `from`, into the current segment; their fold_no and tick_no stay. Those of deleted trials go.
  absl::Status MoveRows(PgConnection& connection, std::int64_t owner_epoch, int from);

  RecentRing& ring_;
  PgVacuum vacuum_;
  int vacuumed_segment_ = -1;  // whose VACUUM was begun; -1 = none
};

}  // namespace stepwell
