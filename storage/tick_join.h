// TickJoin: tables of one tick group, one after another, as one table sorted by time. Folds join the
// chunks of a writer with it, merges the recent rows. A core. Confined to one thread.
//
//   TickJoin join;
//   STEPWELL_RETURN_IF_ERROR(join.Add(table));     // in the order in which they came
//   const TickTable all = join.Take();
#pragma once

#include <cstddef>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "storage/model.h"

namespace stepwell {

class TickJoin {
 public:
  // kInternal when the vectors of `table` do not fit each other. Copies.
  [[nodiscard]] absl::Status Add(const TickTable& table);
  // Before the first Add: about so many ticks and values are to come in all. Columns then grow in one
  // step, in no more than twice the memory of these values, however few ticks each series stands on.
  void Expect(std::size_t tick_count, std::size_t value_count);
  std::size_t tick_count() const { return joined_.times_us.size(); }
  // Ticks of one time stay in the order in which they came. Empty again afterwards.
  TickTable Take();

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  struct Cursor {
    std::size_t tick_count = 0;     // ticks that the column has been told of
    std::size_t table_no = 0;       // the last table that fed it
    std::size_t next_same = kNone;  // next column of the same series
  };
  std::size_t ColumnFor(SeriesNo series_no, std::size_t hint);
  void Append(std::size_t index, const TickColumn& column, std::size_t first_tick,
              std::size_t tick_count);

  TickTable joined_;
  std::vector<Cursor> cursors_;  // one per joined column
  absl::flat_hash_map<SeriesNo, std::size_t> first_column_;
  std::size_t table_no_ = 0;
  std::size_t expected_ticks_ = 0;
  std::size_t reserve_left_ = 0;  // values
};

}  // namespace stepwell
