// PgTraceCandidates: which traces may be over a cap, or were given up by their uploader: what sweeps go through, and previews
// of them. Functions on the caller's connection; they change nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "storage/cap_removals.h"
#include "storage/caps.h"
#include "storage/pg_caps_places.h"
#include "storage/pg_connection.h"
#include "storage/trace_sweep_plan.h"

namespace stepwell {

// Uploads that nobody goes on with for so long are given up.
inline constexpr absl::Duration kTraceAbandonedAfter = absl::Hours(24);
inline constexpr char kTraceAbandoned[] = "abandoned";

struct TraceTrial {
  TrialId trial_id{};
  std::int64_t project_id = 0;
};
// Of `place`; null = all; of `projects` alone. Those that no cap of `placed` can concern are left out.
absl::StatusOr<std::vector<TraceTrial>> ListTraceTrials(PgConnection& connection,
                                                        const FoundPlace* place,
                                                        const ProjectFilter& projects,
                                                        const std::vector<PlacedCaps>& placed);
// As PlanTraceSweep takes them.
absl::StatusOr<std::vector<KeptTrace>> ListKeptTraces(PgConnection& connection, TrialId trial_id);

struct AbandonedTrace {
  TrialId trial_id{};
  KeptTrace trace = {};
};
// Of all trials of `projects`; the first 1000.
absl::StatusOr<std::vector<AbandonedTrace>> ListAbandonedTraces(PgConnection& connection,
                                                                const ProjectFilter& projects);

// As an answer tells what goes: it has the times of its upload.
CapRemoval TraceRemoval(TrialId trial_id, const KeptTrace& trace, const char* field);

// What the next sweep of `place` (null: of all) would remove of traces of `projects` under these caps.
absl::Status PreviewTraces(PgConnection& connection, const FoundPlace* place,
                           const ProjectFilter& projects, const std::vector<PlacedCaps>& placed,
                           CapRemovals& removals);

}  // namespace stepwell
