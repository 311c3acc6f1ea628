// JournalRows: what of a commit group goes into which journal row. A row holds ranges of one trial's
// writers, as many as stay below kJournalRowBytes: so short a row lies in its table as a whole, where a longer
// one is cut into pieces of 2 kB in a table beside it, each with a row and an index entry of its own (decision
// 0025). A writer's advance is cut between chunks; a chunk that is longer than that has a row to itself.
// A row's payload is its ranges' payloads, each behind its length as 4 little-endian bytes. A core;
// PgWriter copies the rows, PgJournal reads them. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "storage/ingest_store.h"

namespace stepwell {

// Of a row with all its columns. PostgreSQL keeps rows up to 8160 bytes in their page (migration 0017).
inline constexpr std::size_t kJournalRowBytes = 8000;

// Sequences of one advance, and their part of its payload. Points into the advance.
struct JournalRange {
  const WriterAdvance* advance = nullptr;
  std::uint64_t first_sequence = 0;
  std::uint64_t last_sequence = 0;
  std::string_view payload;
};

struct JournalRowPlan {
  TrialId trial_id{};
  std::vector<JournalRange> ranges;
};

// `advances` sorted by trial; those without sequences (they only close) are in no row. The plan
// points into what `advances` points to. REQUIRES: cuts as WriterAdvance says.
std::vector<JournalRowPlan> PlanJournalRows(absl::Span<const WriterAdvance* const> advances);

std::string JoinPayloads(const JournalRowPlan& row);
// kDataLoss when the lengths do not add up to `count` payloads.
absl::StatusOr<std::vector<std::string>> SplitPayloads(std::string_view joined, std::size_t count);

}  // namespace stepwell
