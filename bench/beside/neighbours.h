// Neighbours: what may go on beside a load. Each begins when it is made and ends when it is destroyed; then
// failure() says whether it did what it is there for.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "bench/beside/admin_client.h"

namespace stepwell::bench {

class Neighbour {
 public:
  virtual ~Neighbour() = default;
  // Ends it; OK where it did some work. Once.
  virtual absl::Status End() = 0;
};

// Writers of one trial that live for a second each, with 100 series: whatever they wrote is folded when they
// close, and merged. 40,000 samples/s.
std::unique_ptr<Neighbour> StartShortLives(const std::string& address, const std::string& trial);
// Sweeps a trial twice a second. REQUIRES: it has a cap, and grows. `admin` outlives it.
std::unique_ptr<Neighbour> StartSweeps(AdminClient& admin, const std::string& trial);
// A forgotten psql: a snapshot that has read something and stays open.
std::unique_ptr<Neighbour> StartSnapshot(const std::string& database_url);
// pg_dump of everything, again and again, into nothing.
std::unique_ptr<Neighbour> StartDump(const std::string& database_url);

}  // namespace stepwell::bench
