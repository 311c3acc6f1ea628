// What an Open means before any database is asked. Pure functions, for PgIngestStore and its fake.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "storage/ingest_store.h"

namespace stepwell {

// Callers' own trial ids lie below, the master's from here on.
inline constexpr std::int64_t kMasterTrialIdMin = 1'000'000'000;

// kInvalidArgument: neither id nor name, both, an id below 1, an impossible generation.
absl::Status CheckOpen(const OpenWriterRequest& request);

// What an operator made of the trial.
struct TrialShelf {
  bool archived = false;
  bool deleted = false;
};
// kFailedPrecondition for an archived or deleted trial: what it is, and what can be done; with the reason
// TRIAL_ARCHIVED or TRIAL_DELETED.
absl::Status CheckOpenTrial(const TrialSelector& asked, TrialId trial_id, TrialShelf shelf);

// kPermissionDenied, in the same words whether there is such a trial or not.
absl::Status NotLetThrough(const TrialSelector& asked);

// Whether a trial that `writer_count` writers ever opened may have one more: kResourceExhausted.
absl::Status CheckRoomForWriter(const OpenWriterRequest& request, TrialId trial_id,
                                std::int32_t writer_count);

// The key under which the attempt is looked up; empty = the sampler's way, see JoinsNewestAttempt.
std::string AttemptKeyOf(const OpenWriterRequest& request);
// A sampler without a key joins the newest attempt, or makes attempt 1 with the key "".
bool JoinsNewestAttempt(const OpenWriterRequest& request);

}  // namespace stepwell
