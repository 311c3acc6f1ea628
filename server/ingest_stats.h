// IngestStats: what ingest counts of itself since start. Thread-safe: relaxed counters.
#pragma once

#include <atomic>
#include <cstdint>

namespace stepwell {

struct IngestStats {
  std::atomic<std::uint64_t> chunks_committed{0};
  std::atomic<std::uint64_t> samples_committed{0};
  std::atomic<std::uint64_t> chunks_repeated{0};
  std::atomic<std::uint64_t> chunks_rejected{0};
  std::atomic<std::uint64_t> commit_groups{0};
  std::atomic<std::uint64_t> commits_in_doubt{0};
  std::atomic<std::uint64_t> samples_replayed{0};
  // Acked sequences that a replay did not find in the journal; each is in a gap.
  std::atomic<std::uint64_t> sequences_lost{0};
  std::atomic<std::int64_t> streams_open{0};
};

}  // namespace stepwell
