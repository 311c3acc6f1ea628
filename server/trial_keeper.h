// TrialKeeper: keeps the stored state of each trial in step with what is heard of its writers.
// Confined to the thread that calls Look.
//
// The invariant: the thread renews the ownership, too, and a renewal never waits for a look longer than a fraction of
// the lease, whatever clients open and close. So
//  - a look ends with the first call of the store behind which its time is over (kLookFor), and the next one goes on
//    there: it waits for one call at most, which the store bounds (4 s of 10);
//  - a call takes few rows, and an index's range of the trial's writers at most, of which there are kWritersPerTrialMax.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/clock.h"
#include "server/writer_registry.h"
#include "storage/ingest_store.h"

namespace stepwell {

class TrialKeeper {
 public:
  // A twentieth of the lease.
  static constexpr absl::Duration kLookFor = absl::Milliseconds(500);

  // All outlive this.
  TrialKeeper(IngestStore& store, WriterRegistry& registry, const Clock& clock)
      : store_(store), registry_(registry), clock_(clock) {}

  // Stores states that changed since the last look. Blocks for a statement or two per change, and for kLookFor and one
  // more at most. False: there was no time for all trials, and the next look goes on behind those that had their turn.
  bool Look(std::int64_t epoch);

 private:
  // A trial whose turn comes.
  struct Due {
    TrialId trial_id{};
    // Of a look that had no time to store it.
    std::optional<TrialState> state = {};
  };

  bool HasTime() const { return clock_.Monotonic() - began_ < kLookFor; }
  void BeginRound(std::int64_t epoch);
  // kNotFound: nothing is known of it any more.
  absl::StatusOr<TrialState> Derive(TrialId trial_id);
  void Keep(TrialId trial_id, TrialState state);
  // False where it could not be stored, or was deleted.
  bool Store(TrialId trial_id, TrialState state);

  IngestStore& store_;
  WriterRegistry& registry_;
  const Clock& clock_;
  std::int64_t epoch_ = 0;
  absl::Duration began_ = absl::ZeroDuration();  // of this look, by Clock::Monotonic
  // Of this round; the next in turn last.
  std::vector<Due> due_;
  // What was stored last under this epoch.
  absl::flat_hash_map<TrialId, TrialState> stored_;
};

}  // namespace stepwell
