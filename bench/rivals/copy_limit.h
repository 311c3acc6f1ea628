// CopyLimit: what PostgreSQL takes of a load that comes as encoded rows and nothing else: no stream, no
// journal, no dictionary, no ledger, no index. Rows are made as they are copied, by the same client on
// the same cores, each of 1000 samples of one series beside those that share its ticks, and committed
// (with fsync) each 50,000 samples, by one connection. Confined to one thread.
//
//   CopyLimit limit;
//   MakeDay(0, 24, limit.Adder());
//   const double samples_per_second = limit.Measure(connection);
#pragma once

#include <vector>

#include "bench/load/tick_load.h"
#include "storage/pg_connection.h"

namespace stepwell::bench {

class CopyLimit {
 public:
  // Keeps what it sees, 8 bytes a sample and what ticks take. Valid as long as this is.
  SeeTicks Adder();
  // Into tables of its own in the schema of the master, which are gone afterwards.
  double Measure(PgConnection& connection);

 private:
  std::vector<TickTable> tables_;  // of 1000 ticks at most
  std::int64_t sample_count_ = 0;
};

}  // namespace stepwell::bench
