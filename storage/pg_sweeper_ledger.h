// What a sweep's transaction writes down of what it removes: gaps, and the answer. Functions for the
// parts of the sweeper.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/steady_time.h"
#include "storage/cap_removals.h"
#include "storage/caps_store.h"
#include "storage/leaf_sweep.h"
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
// Likewise, all of one leaf: a trial that lost samples of all of its groups there has one gap, of all.
absl::Status NoteGapsOfLeaf(PgConnection& connection, const LeafKey& leaf,
                            const std::vector<CapRemoval>& removed);

// When to stop for now.
class SweepPace {
 public:
  explicit SweepPace(absl::Duration duration) : duration_(duration) { Start(); }
  // The time counts from here on: what has to be read before anything can be removed is no work yet.
  void Start() { deadline_ = SteadyTime::Now() + duration_; }
  // Also remembers that it stopped somebody.
  bool IsOver();
  bool stopped() const { return stopped_; }

 private:
  const absl::Duration duration_;
  SteadyTime deadline_;
  bool stopped_ = false;
};

// Errors of single places: a leaf or a trial that cannot be swept holds up no other.
class SweepErrors {
 public:
  // Both outlive this.
  SweepErrors(const PgConnection& connection, SweepResult& result)
      : connection_(connection), result_(result) {}
  // Logs an error and keeps the first. OK: the next place may be swept. Otherwise nothing can be: the
  // connection is lost, or another master owns the database.
  absl::Status Take(const absl::Status& status, absl::string_view place);

 private:
  const PgConnection& connection_;
  SweepResult& result_;
};

}  // namespace stepwell
