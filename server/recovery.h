// Recovery: what a master does when it has just become the owner. First it fences the former owner
// and learns where the writers stand; from then on ingest is open. Then it replays the journal's
// unfolded part into heads, while reads of those trials say `recovering`. What the journal should
// hold and does not, or not readably, is told, and declared as a gap by the fold that passes it.
//
//   STEPWELL_ASSIGN_OR_RETURN(TakenOver taken, TakeOver(parts, epoch));   // short; then BecomeOwner
//   STEPWELL_RETURN_IF_ERROR(ReplayJournal(parts, epoch, taken));         // as long as it takes
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/heads.h"
#include "server/ingest_stats.h"
#include "server/master_state.h"
#include "server/writer_registry.h"
#include "storage/fold_store.h"
#include "storage/ingest_store.h"

namespace stepwell {

// All outlive the calls.
struct RecoveryParts {
  IngestStore& store;
  FoldStore& fold_store;
  Heads& heads;
  WriterRegistry& registry;
  MasterState& state;
  IngestStats& stats;
};

struct TakenOver {
  // Trials whose journal must be replayed.
  std::vector<TrialId> trials;
  // Their writers that are not folded up to their last sequence.
  std::vector<WriterProgress> writers;
};

// Blocks for a few statements. The master must not be owner yet, as MasterState sees it.
absl::StatusOr<TakenOver> TakeOver(const RecoveryParts& parts, std::int64_t epoch);

// kAborted when the ownership under `epoch` ended meanwhile; kUnavailable: may be called again.
absl::Status ReplayJournal(const RecoveryParts& parts, std::int64_t epoch, const TakenOver& taken);

}  // namespace stepwell
