// RowWriter: ticks and rows put into a database by hand, as folds and merges write them, for tests
// of readers. Makes the leaves that it needs. Aborts on any failure. Confined to one thread.
//
//   RowWriter writer(url);
//   writer.AddTrial(7, 1);
//   writer.AddRecent({.trial_id = 7, .writer_no = 1, .fold_no = 3}, table);
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "storage/model.h"
#include "storage/pg_connection.h"

namespace stepwell::testing {

class RowWriter {
 public:
  struct Place {
    std::int64_t trial_id = 7;
    std::int32_t writer_no = 1;
    std::int64_t fold_no = 1;  // of recent rows
    std::int16_t keep_class = 0;
    std::int32_t received_day = 20'000;  // days since 1970
  };

  explicit RowWriter(const std::string& url);

  void Run(const std::string& script);
  // With one open writer per attempt: writer_no = attempt, rank 0.
  void AddTrial(std::int64_t trial_id, std::int32_t attempt_count);
  void AddSeries(std::int64_t trial_id, const Series& series);
  // One ticks row and a row per column. REQUIRES: times ascend, the table has samples.
  void AddMerged(const Place& place, const TickTable& table);
  void AddRecent(const Place& place, const TickTable& table);

 private:
  void AddLeaf(std::int16_t keep_class, std::int32_t received_day);
  void AddTicks(const Place& place, const TickTable& table, bool recent, std::int64_t tick_no);
  void AddColumn(const Place& place, const TickTable& table, const TickColumn& column, bool recent,
                 std::int64_t tick_no);

  const std::unique_ptr<PgConnection> connection_;
  std::set<std::pair<std::int16_t, std::int32_t>> leaves_;
  std::int64_t tick_no_ = 0;
};

}  // namespace stepwell::testing
