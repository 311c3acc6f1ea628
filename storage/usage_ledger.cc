#include "storage/usage_ledger.h"

#include <algorithm>
#include <vector>

#include "storage/pg_array.h"
#include "storage/pg_fold_sql.h"

namespace stepwell {

void UsageLedger::Add(const UsageKey& key, const UsageChange& change) {
  UsageChange& held = changes_[key];
  held.row_count += change.row_count;
  held.sample_count += change.sample_count;
  held.byte_count += change.byte_count;
  held.rollup_byte_count += change.rollup_byte_count;
  held.removed_sample_count += change.removed_sample_count;
  held.first_time_us = std::min(held.first_time_us, change.first_time_us);
  held.last_time_us = std::max(held.last_time_us, change.last_time_us);
}

void UsageLedger::Subtract(const UsageKey& key, const UsageChange& change) {
  Add(key, {.row_count = -change.row_count,
            .sample_count = -change.sample_count,
            .byte_count = -change.byte_count,
            .rollup_byte_count = -change.rollup_byte_count,
            .removed_sample_count = -change.removed_sample_count});
}

absl::Status WriteUsage(PgConnection& connection, const UsageLedger& ledger) {
  if (ledger.changes().empty()) return absl::OkStatus();
  std::vector<std::int64_t> trials, rows, samples, bytes, rollup_bytes, removed, firsts, lasts;
  std::vector<std::int32_t> days;
  std::vector<std::int16_t> classes;
  std::vector<std::string> groups;
  for (const auto& [key, change] : ledger.changes()) {
    trials.push_back(Value(key.trial_id));
    days.push_back(key.received_day);
    classes.push_back(key.keep_class);
    groups.push_back(key.metric_group);
    rows.push_back(change.row_count);
    samples.push_back(change.sample_count);
    bytes.push_back(change.byte_count);
    rollup_bytes.push_back(change.rollup_byte_count);
    removed.push_back(change.removed_sample_count);
    firsts.push_back(change.first_time_us);
    lasts.push_back(change.last_time_us);
  }
  return connection
      .ExecKept(sql::kMoveUsage,
                {PgArray(trials), PgArray(days), PgArray(classes), PgArray(groups), PgArray(rows),
                 PgArray(samples), PgArray(bytes), PgArray(rollup_bytes), PgArray(firsts),
                 PgArray(lasts), PgArray(removed)})
      .status();
}

}  // namespace stepwell
