// PgBoundSweeper: keeps bounds of bytes and of samples: finds the trials, groups and series that are over
// theirs, and has their oldest rows taken away. Rows of recent count, but go only once they are merged:
// within the hour (slow series: the day). Rollups go once no merged sample of the trial or group is left.
// What it remembers saves work only: a trial that does not grow is looked at once an hour, and when caps
// have changed. Confined to one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "storage/caps_index.h"
#include "storage/caps_store.h"
#include "storage/pg_caps_places.h"
#include "storage/pg_connection.h"
#include "storage/pg_sweeper_slices.h"

namespace stepwell {

struct BoundMemory {
  std::string caps_version = {};
  absl::Time all_seen = absl::InfinitePast();
  // Trials that grew when they were last looked at.
  std::vector<std::int64_t> growing = {};
};

class PgBoundSweeper {
 public:
  // All outlive this.
  PgBoundSweeper(PgConnection& connection, std::int64_t owner_epoch, SweepPace& pace,
                 SweepResult& result, BoundMemory& memory)
      : connection_(connection),
        pace_(pace),
        memory_(memory),
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
  absl::StatusOr<std::vector<Trial>> ReadTrials(const FoundPlace* place);
  absl::Status SweepTrial(const Trial& trial, const std::vector<PlacedCaps>& deciding,
                          const std::string& only_group);
  // `group` empty = the trial as a whole.
  absl::Status SweepBytes(TrialId trial_id, const std::string& group, std::int64_t bytes_max);
  absl::Status SweepSamples(TrialId trial_id, const std::string& group, std::int64_t samples_max);
  absl::StatusOr<SliceTarget> TargetOf(TrialId trial_id, const std::string& group,
                                       const char* field);
  absl::StatusOr<std::vector<Leaf>> ReadLeaves(TrialId trial_id, const std::string& group);
  absl::StatusOr<std::int64_t> ReadBytes(TrialId trial_id, const std::string& group);
  absl::StatusOr<bool> HasMergedRows(TrialId trial_id, const std::string& group);

  PgConnection& connection_;
  SweepPace& pace_;
  BoundMemory& memory_;
  PgSliceSweeper slices_;
};

}  // namespace stepwell
