// CapsStore: what the keeping of bounds asks of the database: where caps are set and what holds, what
// a sweep would remove, sweeps themselves, and trials that are archived or deleted. PgCapsStore is
// the real one.
//
//   STEPWELL_ASSIGN_OR_RETURN(CapsReport report, store.Set(epoch, {.project = "vision"}, kAllProjects,
//                                                          {.raw_age_seconds = 30 * 86'400}, {}));
//   for (;;) {   // the loop of a master, every minute or so
//     STEPWELL_ASSIGN_OR_RETURN(SweepResult result, store.Sweep(epoch, {.now_us = now}, kAllProjects));
//     if (!result.more) break;
//   }
//
// Errors: kInvalidArgument = a field, what was wrong with it and what is allowed; kNotFound = the
// trial is unknown, deleted, or lies in none of the projects that its asker may be told of; kFailedPrecondition = a ninth pair of ages, or too many places;
// kAborted = `owner_epoch` is not that of the masters row (checked where there is one): another
// master owns the database, stop everything; kUnavailable = come again (connection, shutdown).
// After any error, and any kill, what was done is done as a whole or not at all.
// Thread-safe; each call blocks on the database.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "storage/cap_removals.h"
#include "storage/caps.h"
#include "storage/ingest_store.h"
#include "storage/project_filter.h"

namespace stepwell {

// A place as a caller names it. Neither project nor trial = all trials.
struct CapsTarget {
  // By name; Set creates one that does not exist. At most one of the two.
  std::optional<std::string> project = {};
  std::optional<TrialSelector> trial = {};
  // Empty = all groups.
  std::string metric_group = {};
};

// kInvalidArgument: both a project and a trial, an empty project, a trial without id and name, a group
// that is too long.
absl::Status CheckTarget(const CapsTarget& target);

struct CapsReport {
  CapsPlace place = {};
  // At this very place.
  Caps set = {};
  EffectiveCaps effective = {};
  // Every place that sets something and decides over this one, or lies below it; widest first, at
  // most kPlacesListedMax.
  std::vector<PlacedCaps> places = {};
};
inline constexpr std::size_t kPlacesListedMax = 1000;
// In all: each is read where a class of ages is sought.
inline constexpr std::size_t kPlacesMax = 10'000;
// Of one owner.
inline constexpr std::size_t kPlacesOfOwnerMax = 100;

struct PreviewRequest {
  // Which trials and groups. Absent = all.
  std::optional<CapsTarget> target = {};
  // As if these had been set there; needs a target.
  std::optional<Caps> caps = {};
  // As if these had been unset there, as Set does; needs a target.
  std::vector<std::string> clear = {};
  // As if they had been set when each row was merged.
  bool for_merged_rows = false;
  // 0 = this machine's clock.
  std::int64_t now_us = 0;
};

struct SweepRequest {
  // Which trials. Absent = all, and then ages, too: they concern whole days of all trials.
  std::optional<CapsTarget> target = {};
  // 0 = this machine's clock.
  std::int64_t now_us = 0;
  // Each of the three parts of a call (leaves, deleted trials, bounds) stops soon after this much work,
  // with `more` set: none starves the others.
  absl::Duration duration_max = absl::Milliseconds(500);
};

struct SweepResult {
  // What went, exact, with its gaps noted in the same transactions.
  CapRemovals removed = {};
  // Leaves whose rows the ledger has given up, but which could not be locked within 20 ms or which a
  // snapshot of before may still read: a later sweep empties them.
  std::int32_t leaves_left = 0;
  // Leaves emptied by this call.
  std::int32_t leaves_emptied = 0;
  // Rows of deleted trials that went.
  std::int64_t deleted_row_count = 0;
  // duration_max stopped it. The next call goes on behind.
  bool more = false;
  // It came further, though it may have removed nothing. Neither that nor a removal: to call again at
  // once is in vain.
  bool advanced = false;
  // A leaf or a trial could not be swept, the others were: the first error.
  absl::Status failed = absl::OkStatus();

  bool came_further() const {
    return advanced || leaves_emptied > 0 || deleted_row_count > 0 || !removed.removals.empty();
  }
};

struct ArchivedTrial {
  TrialId trial_id{};
  bool archived = false;
};

struct DeletedTrial {
  TrialId trial_id{};
  // What it held, by the ledger: samples, and bytes of samples, ticks and rollups.
  std::int64_t sample_count = 0;
  std::int64_t byte_count = 0;
  // False: rows are left, which go with sweeps.
  bool done = false;
};

// What a master asks of one trial when it is opened.
struct TrialCaps {
  EffectiveCaps caps = {};
  // Of its first Open, by the database's clock: a profiling window counts from here.
  std::int64_t created_time_us = 0;
};

class CapsStore {
 public:
  virtual ~CapsStore() = default;

  // Of `projects` alone, and what is set for all trials; names are not checked.
  [[nodiscard]] virtual absl::StatusOr<CapsReport> Get(const CapsTarget& target,
                                                       const ProjectFilter& projects) = 0;
  // Sets the fields of `caps` that are present, unsets those named in `clear`; the others stay. Holds
  // for rows that are merged from its COMMIT on.
  [[nodiscard]] virtual absl::StatusOr<CapsReport> Set(std::int64_t owner_epoch,
                                                       const CapsTarget& target,
                                                       const ProjectFilter& projects,
                                                       const Caps& caps,
                                                       const std::vector<std::string>& clear) = 0;
  // Of trials of `projects` alone. From the ledger alone but for series_samples, which counts rows of trials whose ledger says that
  // some series may be over.
  [[nodiscard]] virtual absl::StatusOr<CapRemovals> Preview(const PreviewRequest& request,
                                                            const ProjectFilter& projects) = 0;
  // Removes what caps ask for, empties leaves, drops old empty ones, and takes away slices of deleted
  // trials. What fails in one place is in `failed`; the loss of the database or of its ownership is the
  // call's. One sweep at a time; another waits for it, up to 10 s, then kUnavailable. The target is looked for
  // in `projects`; kPermissionDenied for one that is all trials, where they are not all projects.
  [[nodiscard]] virtual absl::StatusOr<SweepResult> Sweep(std::int64_t owner_epoch,
                                                          const SweepRequest& request,
                                                          const ProjectFilter& projects) = 0;
  // From its COMMIT on writers of an archived trial are refused: OpenWriter with kFailedPrecondition,
  // Commit with kFenced. What they had committed is folded and merged all the same. Idempotent.
  [[nodiscard]] virtual absl::StatusOr<ArchivedTrial> Archive(std::int64_t owner_epoch,
                                                              const TrialSelector& trial,
                                                              const ProjectFilter& projects,
                                                              bool archived) = 0;
  // From its COMMIT on nobody reads or writes the trial; of what was committed and is not folded yet a
  // fold keeps nothing. Removes rows for up to a second; sweeps do the rest. Idempotent: of a deleted
  // trial it says what is left.
  [[nodiscard]] virtual absl::StatusOr<DeletedTrial> Delete(std::int64_t owner_epoch,
                                                            const TrialSelector& trial,
                                                            const ProjectFilter& projects) = 0;
  // kNotFound for an unknown or deleted trial.
  [[nodiscard]] virtual absl::StatusOr<TrialCaps> ReadTrialCaps(TrialId trial_id) = 0;
  // A gap of the trial, cause kCap, from `end_us` on; how much is missing is not known. Idempotent.
  [[nodiscard]] virtual absl::Status NoteWindowOver(std::int64_t owner_epoch, TrialId trial_id,
                                                    std::int64_t end_us) = 0;
};

}  // namespace stepwell
