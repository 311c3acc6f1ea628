// PgLeafAnalyzer: statistics for leaves after their first merges, beside everything else: ANALYZE of one
// class and day at a time, on PgVacuum's thread and connection. It holds a lock that merges, commits and
// readers do not wait for; a sweep that wants the leaf gives up after 20 ms, as always, and comes again.
// Confined to the folder's thread.
#pragma once

#include <utility>

#include "storage/leaf_growth.h"
#include "storage/pg_connection.h"
#include "storage/pg_vacuum.h"

namespace stepwell {

class PgLeafAnalyzer {
 public:
  explicit PgLeafAnalyzer(PgConnection::Options options) : analyze_(std::move(options)) {}

  LeafGrowth& growth() { return growth_; }
  // Begins with the next leaf that is due, unless one is under way.
  void Run();

 private:
  LeafGrowth growth_;
  PgVacuum analyze_;
};

}  // namespace stepwell
