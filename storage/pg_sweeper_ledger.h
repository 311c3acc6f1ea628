// What a sweep's transaction writes down of what it removes: gaps, and the answer. Functions for the
// parts of the sweeper.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "storage/cap_removals.h"
#include "storage/pg_connection.h"

namespace stepwell {

// One transaction of a sweep: begins, checks that we own the database, `body`, commits. `removed` joins
// `total` once the COMMIT is known.
absl::Status InSweepTransaction(
    PgConnection& connection, std::int64_t owner_epoch, CapRemovals& total,
    const std::function<absl::Status(std::vector<CapRemoval>& removed)>& body);

// Notes the samples of `removed`, all of one cap, as gaps. One statement, none when nothing is known to
// have gone.
absl::Status NoteGaps(PgConnection& connection, const std::vector<CapRemoval>& removed);

// When to stop for now.
class SweepPace {
 public:
  explicit SweepPace(absl::Time deadline) : deadline_(deadline) {}
  // Also remembers that it stopped somebody.
  bool IsOver();
  bool stopped() const { return stopped_; }

 private:
  const absl::Time deadline_;
  bool stopped_ = false;
};

}  // namespace stepwell
