// JournalRows: what of a commit group goes into which journal row: one row per trial, several where
// the payloads of a trial exceed kJournalRowBytes. A row's payload is its ranges' payloads, each
// behind its length as 4 little-endian bytes. A core; PgWriter copies the rows, PgJournal reads
// them. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "storage/ingest_store.h"

namespace stepwell {

// A row of PostgreSQL holds 1 GiB at most; this keeps the memory of a replay small.
inline constexpr std::size_t kJournalRowBytes = 8 << 20;

struct JournalRowPlan {
  TrialId trial_id{};
  std::vector<const WriterAdvance*> advances;
};

// `advances` sorted by trial; those without sequences (they only close) are in no row. The plan
// points into what `advances` points to.
std::vector<JournalRowPlan> PlanJournalRows(absl::Span<const WriterAdvance* const> advances);

std::string JoinPayloads(const JournalRowPlan& row);
// kDataLoss when the lengths do not add up to `count` payloads.
absl::StatusOr<std::vector<std::string>> SplitPayloads(std::string_view joined, std::size_t count);

}  // namespace stepwell
