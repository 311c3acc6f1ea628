// UsageLedger: changes of what is stored, by trial, day, class and metric group, gathered while a
// fold or merge builds its rows and written in its transaction. Confined to one thread.
//
//   UsageLedger ledger;
//   ledger.Add({trial, day, keep_class, "gpu"}, {.row_count = 1, .sample_count = 10, ...});
//   STEPWELL_RETURN_IF_ERROR(WriteUsage(connection, ledger));
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "storage/model.h"
#include "storage/pg_connection.h"

namespace stepwell {

struct UsageKey {
  TrialId trial_id{};
  std::int32_t received_day = 0;
  std::int16_t keep_class = 0;
  std::string metric_group;
  auto operator<=>(const UsageKey&) const = default;
};

// A row counts in the group of its series; a row of ticks adds its bytes to the group of its first
// series. Bytes are those of the row as it is copied; those of rollups are counted apart, their rows
// not at all.
struct UsageChange {
  std::int64_t row_count = 0;
  std::int64_t sample_count = 0;
  std::int64_t byte_count = 0;
  std::int64_t rollup_byte_count = 0;
  // Of samples that a cap took away.
  std::int64_t removed_sample_count = 0;
  std::int64_t first_time_us = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_time_us = std::numeric_limits<std::int64_t>::min();
};

class UsageLedger {
 public:
  void Add(const UsageKey& key, const UsageChange& change);
  // Counts are taken away; the time range stays as it is, since others may need it.
  void Subtract(const UsageKey& key, const UsageChange& change);
  const std::map<UsageKey, UsageChange>& changes() const { return changes_; }

 private:
  std::map<UsageKey, UsageChange> changes_;
};

// One statement inside the caller's transaction.
absl::Status WriteUsage(PgConnection& connection, const UsageLedger& ledger);

}  // namespace stepwell
