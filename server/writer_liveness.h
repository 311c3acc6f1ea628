// WriterLiveness: what only the running master knows of writers: which streams hold them open, and
// when each was last heard of. Stands between ingest, which keeps it, and readers, which put it
// beside the database's bookkeeping. Thread-safe.
#pragma once

#include <cstdint>
#include <map>

#include "base/ids.h"
#include "base/steady_time.h"

namespace stepwell {

struct WriterSeen {
  // Newest chunk, gap, heartbeat or Open, by the master's clock, microseconds since 1970: for people.
  std::int64_t seen_time_us = 0;
  // The same moment. How long ago it was is told by this alone: a wall clock that is set makes nobody silent.
  SteadyTime heard = {};
  // A stream has it open now.
  bool open = false;
};

class WriterLiveness {
 public:
  virtual ~WriterLiveness() = default;

  // Writers of the trial that were heard of since this master started; others are missing.
  [[nodiscard]] virtual std::map<WriterNo, WriterSeen> Seen(TrialId trial_id) const = 0;
};

}  // namespace stepwell
