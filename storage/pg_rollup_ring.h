// PgRollupRing: keeps recent_rollups_0..3 turning. Rows of days that are over move into their leaves, and the
// segment is truncated once nobody's snapshot can still see rows in it. It remembers which classes and days
// have rows there, so that it asks only where there is something to do. Confined to the folder's thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/steady_time.h"
#include "storage/leaf_sweep.h"
#include "storage/pg_connection.h"
#include "storage/pg_leaves.h"
#include "storage/rollup_ring.h"

namespace stepwell {

class PgRollupRing {
 public:
  // `leaves` outlives this.
  explicit PgRollupRing(PgLeaves& leaves) : leaves_(leaves) {}

  // Rows of this class and day may come there, with the transaction under way.
  void NoteWritten(const LeafKey& leaf);
  // Moves some of the rows of days before `first_day` into their leaves; whether there may be more.
  // REQUIRES: no merge is in the middle of its series.
  absl::StatusOr<bool> MoveBefore(PgConnection& connection, std::int64_t owner_epoch,
                                  std::int32_t first_day);
  // Truncates segments of other days than `today` that are empty. Never waits over 20 ms for a lock.
  absl::Status Recycle(PgConnection& connection, std::int64_t owner_epoch, std::int32_t today);
  // Another master may have gone on, or something went wrong: reads anew what is there.
  void Forget() { is_known_ = false; }

 private:
  struct Segment {
    bool is_clean = false;
    // Taken after the segment was found empty: whoever's snapshot is younger sees nothing in it. 0 = not yet.
    std::int64_t emptied_xid = 0;
  };

  absl::Status Know(PgConnection& connection);
  bool Holds(int segment) const;
  absl::Status RecycleSegment(PgConnection& connection, std::int64_t owner_epoch, int segment);

  PgLeaves& leaves_;
  bool is_known_ = false;
  std::set<LeafKey> held_;
  std::map<LeafKey, SteadyTime> aside_;  // whose move failed, and until when it is not tried again
  std::array<Segment, kRollupSegments> segments_{};
};

}  // namespace stepwell
