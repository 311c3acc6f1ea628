// MasterMetrics: what the master measures about itself, as Prometheus reads it (text format 0.0.4): base
// units, counters end in _total, no label whose values grow with trials. A core; the names are a promise.
//
//   response.body = MetricsText(reading);
#pragma once

#include <cstdint>
#include <string>

#include "server/ingest_stats.h"
#include "server/master_state.h"

namespace stepwell {

struct MasterReading {
  std::string version;
  MasterState::Snapshot state;
  const IngestStats& stats;
  std::int64_t writers_open = 0;
  std::int64_t unfolded_bytes = 0;
};

inline constexpr char kMetricsContentType[] = "text/plain; version=0.0.4; charset=utf-8";

std::string MetricsText(const MasterReading& reading);

}  // namespace stepwell
