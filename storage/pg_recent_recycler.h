// PgRecentRecycler: keeps the ring of recent_0..3 turning: empties what merges have left over,
// truncates segments that nobody can still see rows in, and moves folds to the next one. Confined
// to the folder's thread.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/pg_connection.h"
#include "storage/recent_ring.h"

namespace stepwell {

class PgRecentRecycler {
 public:
  // `ring` outlives this.
  explicit PgRecentRecycler(RecentRing& ring) : ring_(ring) {}

  // What the tables hold, at start: the segment with the newest fold becomes the current one.
  absl::Status Start(PgConnection& connection);
  // One round; never waits over 20 ms for a lock.
  absl::Status Recycle(PgConnection& connection, std::int64_t now_us);

 private:
  absl::StatusOr<bool> IsEmpty(PgConnection& connection, int segment);
  absl::StatusOr<bool> SeenByOlderSnapshot(PgConnection& connection, int segment);
  // True when it is empty now; also when somebody held a lock and it stays as it is.
  absl::Status TruncateIfUnseen(PgConnection& connection, int segment);
  absl::Status Advance(PgConnection& connection);
  // Some rows of `from`, into the current segment; their fold_no and tick_no stay.
  absl::Status MoveRows(PgConnection& connection, int from);

  RecentRing& ring_;
};

}  // namespace stepwell
