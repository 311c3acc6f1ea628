// MasterMetrics: what the master measures about itself, as Prometheus reads it: base units, counters end in
// _total, no label whose values grow with trials. A core; the names are a promise.
//
//   AddMasterMetrics(reading, families);
#pragma once

#include <cstdint>
#include <string>

#include "server/ingest_stats.h"
#include "server/master_state.h"
#include "server/metric_families.h"
#include "server/rate_limits.h"

namespace stepwell {

struct MasterReading {
  std::string version;
  MasterState::Snapshot state;
  const IngestStats& stats;
  std::int64_t writers_open = 0;
  std::int64_t unfolded_bytes = 0;
  // Of the queue before commits; 0 = there is none yet.
  std::int64_t queue_bytes = 0;
  std::int64_t queue_limit_bytes = 0;
  std::int64_t swept_samples = 0;
  RateCounts rates = {};
  // Of this process; below 0 = not known.
  std::int64_t memory_limit_bytes = 0;
  std::int64_t memory_resident_bytes = -1;
};

void AddMasterMetrics(const MasterReading& reading, MetricFamilies& families);

}  // namespace stepwell
