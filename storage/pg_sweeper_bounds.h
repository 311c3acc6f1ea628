// PgBoundSweeper: keeps bounds of bytes and of samples: finds the trials, groups and series that are over
// theirs, and has their oldest rows taken away. Rows of recent count, but go only once they are merged:
// within the hour (slow series: the day). Leaves that were given up are left to PgLeafSweeper: a row of
// theirs that went here would be told as two gaps. Rollups go once no merged sample of the trial or group
// is left. What it remembers saves work only: a trial that does not grow is looked at once an hour, and
// when caps have changed; a group is ranked again when it has changed. A call goes on behind the trial that
// the last one looked at, so that no trial waits for another for ever. Confined to one thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/steady_time.h"
#include "storage/caps_index.h"
#include "storage/caps_store.h"
#include "storage/pg_caps_places.h"
#include "storage/pg_connection.h"
#include "storage/pg_series_excess.h"
#include "storage/pg_sweeper_slices.h"

namespace stepwell {

// One way over all trials, in calls: each once in the order of their ids, then those that were not done
// in their turn again, for some minutes.
struct BoundRound {
  // Of which places; empty = none is under way.
  std::string key = {};
  SteadyTime begin = SteadyTime::InfinitePast();
  bool sees_all = false;
  // The last one that was looked at.
  std::int64_t after = 0;
  // That grew at some call.
  std::set<std::int64_t> growing = {};
  // Whose turn ended before their work.
  std::set<std::int64_t> cut = {};
  // Those of `cut` that have another turn now; empty = all trials have their first.
  std::set<std::int64_t> again = {};
};

// How far the series of one group were ranked.
struct GroupRank {
  // Of the ledger as the ranking began; -1 = to be ranked again in any case.
  std::int64_t sample_count = -1;
  std::int64_t byte_count = -1;
  std::int32_t after_series = 0;
  bool is_done = true;
  SteadyTime done_time = SteadyTime::InfinitePast();
};

struct BoundMemory {
  std::string caps_version = {};
  SteadyTime all_seen = SteadyTime::InfinitePast();
  // Trials that grew in the last round.
  std::set<std::int64_t> growing = {};
  // Of sweeps of everything, and of the last other place.
  BoundRound round = {};
  BoundRound place_round = {};
  std::map<std::pair<std::int64_t, std::string>, GroupRank> ranks = {};
};

class PgBoundSweeper {
 public:
  // All outlive this.
  PgBoundSweeper(PgConnection& connection, std::int64_t owner_epoch, SweepPace& pace,
                 SweepResult& result, BoundMemory& memory)
      : connection_(connection),
        pace_(pace),
        result_(result),
        memory_(memory),
        errors_(connection, result),
        slices_(connection, owner_epoch, pace, result) {}

  // Only trials and groups of `place`; null = all.
  absl::Status Run(const FoundPlace* place);

 private:
  struct Group {
    std::string metric_group = {};
    std::int64_t sample_count = 0;
    std::int64_t byte_count = 0;
  };
  struct Trial {
    TrialId trial_id{};
    std::int64_t project_id = 0;
    std::vector<Group> groups = {};
  };
  struct Leaf {
    LeafKey key = {};
    std::int64_t row_count = 0;
    std::int64_t byte_count = 0;
    std::int64_t rollup_byte_count = 0;
  };
  // The round that goes on, or a new one.
  absl::StatusOr<BoundRound*> RoundOf(const FoundPlace* place);
  absl::StatusOr<std::vector<Trial>> ReadTrials(const FoundPlace* place, const BoundRound& round);
  // False: the time is over before all had their turn.
  absl::StatusOr<bool> SweepTrials(const std::vector<Trial>& trials, const CapsIndex& index,
                                   const FoundPlace* place, BoundRound& round);
  // After the last trial.
  void EndTurns(const std::vector<Trial>& trials, const FoundPlace* place, BoundRound& round);
  absl::Status SweepTrial(const Trial& trial, const std::vector<PlacedCaps>& deciding,
                          const std::string& only_group, SteadyTime round_begin);
  // `group` empty = the trial as a whole.
  absl::Status SweepBytes(TrialId trial_id, const std::string& group, std::int64_t bytes_max);
  absl::Status SweepSamples(TrialId trial_id, const Group& group, std::int64_t samples_max,
                            SteadyTime round_begin);
  // Bytes that went.
  absl::StatusOr<std::int64_t> RemoveExcess(const SliceTarget& target, const ExcessRows& rows);
  absl::StatusOr<SliceTarget> TargetOf(TrialId trial_id, const std::string& group,
                                       const char* field);
  absl::StatusOr<std::vector<Leaf>> ReadLeaves(TrialId trial_id, const std::string& group);
  absl::StatusOr<std::int64_t> ReadBytes(TrialId trial_id, const std::string& group);
  absl::StatusOr<bool> HasMergedRows(TrialId trial_id, const std::string& group);

  PgConnection& connection_;
  SweepPace& pace_;
  SweepResult& result_;
  BoundMemory& memory_;
  SweepErrors errors_;
  PgSliceSweeper slices_;
  // Series that this call has ranked.
  std::int64_t ranked_count_ = 0;
};

}  // namespace stepwell
