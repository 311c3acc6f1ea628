// IngestStats: what ingest counts of itself since start. Thread-safe: relaxed counters, and no lock but for
// what is rejected.
#pragma once

#include <atomic>
#include <cstdint>

#include "server/latency_histogram.h"
#include "server/missing_counts.h"

namespace stepwell {

struct IngestStats {
  std::atomic<std::uint64_t> chunks_committed{0};
  std::atomic<std::uint64_t> samples_committed{0};
  std::atomic<std::uint64_t> chunks_repeated{0};
  // Consumed without their samples, or some of them. These are in chunks_committed, too.
  std::atomic<std::uint64_t> chunks_rejected{0};
  std::atomic<std::uint64_t> commit_groups{0};
  std::atomic<std::uint64_t> commits_in_doubt{0};
  std::atomic<std::uint64_t> samples_replayed{0};
  // Acked sequences that a replay did not find in the journal; each is in a gap.
  std::atomic<std::uint64_t> sequences_lost{0};
  std::atomic<std::int64_t> streams_open{0};
  // Of each chunk, gap or Close: from when it was checked, which is after limits have slowed its stream, until its
  // ack was handed to the stream.
  LatencyHistogram ack_latency;
  // Of transactions that stored chunks, as the database took them; those that failed are not in it.
  LatencyHistogram commit_duration;
  // Of what was committed.
  MissingCounts missing;
};

}  // namespace stepwell
