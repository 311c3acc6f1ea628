// RemoteLoad: a TickLoad as VictoriaMetrics takes it: by writer, remote-write requests, value and batch, of
// about as many samples as vmagent sends. Thread-compatible.
//
//   RemoteLoad theirs;
//   const TickLoad ours = MakeDay(0, 24, theirs.Adder());
#pragma once

#include <string>
#include <vector>

#include "bench/load/tick_load.h"

namespace stepwell::bench {

class RemoteLoad {
 public:
  // Adds what it sees. REQUIRES: this outlives it.
  SeeTicks Adder();
  // Snappy-compressed WriteRequests, by writer.
  const std::vector<std::vector<std::string>>& requests() const { return requests_; }

 private:
  std::vector<std::vector<std::string>> requests_;
};

}  // namespace stepwell::bench
