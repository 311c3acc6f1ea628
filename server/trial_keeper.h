// TrialKeeper: keeps the stored state of each trial in step with what is heard of its writers.
// Confined to the thread that calls Look.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/clock.h"
#include "server/writer_registry.h"
#include "storage/ingest_store.h"

namespace stepwell {

class TrialKeeper {
 public:
  // All outlive this.
  TrialKeeper(IngestStore& store, WriterRegistry& registry, const Clock& clock)
      : store_(store), registry_(registry), clock_(clock) {}

  // Stores states that changed since the last look. Blocks for a statement per change.
  void Look(std::int64_t epoch);

 private:
  absl::StatusOr<TrialState> Derive(TrialId trial_id, WriterRegistry::Facts facts,
                                    std::int64_t now_us);
  absl::StatusOr<std::vector<WriterProgress>> ReadAllWriters(TrialId trial_id);

  IngestStore& store_;
  WriterRegistry& registry_;
  const Clock& clock_;
  std::int64_t epoch_ = 0;
  // What was stored last under this epoch.
  absl::flat_hash_map<TrialId, TrialState> stored_;
};

}  // namespace stepwell
