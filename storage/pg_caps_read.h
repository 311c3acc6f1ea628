// What caps say, read from the database. Functions for PgMerger, PgCapsStore and the sweeper, on the
// caller's connection.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "storage/keep_plan.h"
#include "storage/pg_connection.h"
#include "storage/project_filter.h"

namespace stepwell {

struct CapsOfTrial {
  std::int64_t project_id = 0;
  std::int64_t created_time_us = 0;
  // Those that decide over it, without names.
  std::vector<PlacedCaps> placed = {};
};

// One statement. No value: the trial is unknown or deleted.
absl::StatusOr<std::optional<CapsOfTrial>> ReadCapsOfTrial(PgConnection& connection,
                                                           TrialId trial_id);

absl::StatusOr<KeepClasses> ReadKeepClasses(PgConnection& connection);

// Two statements. Class 0 for all groups where the trial is gone.
absl::StatusOr<KeepPlan> ReadKeepPlan(PgConnection& connection, TrialId trial_id);

// Inside a transaction: holds the plan's classes until its end, so that none gets other ages. False:
// one has other ages already, the plan is of before.
absl::StatusOr<bool> HoldKeepPlan(PgConnection& connection, const KeepPlan& plan);

struct Places {
  // Widest first, with names.
  std::vector<PlacedCaps> placed = {};
  // Trial and project of each trial that a place names, ascending.
  std::vector<std::pair<std::int64_t, std::int64_t>> trial_projects = {};
};
// Those for all trials, and of `projects` alone: what is told to somebody decides over no others.
absl::StatusOr<Places> ReadPlaces(PgConnection& connection, const ProjectFilter& projects);

}  // namespace stepwell
