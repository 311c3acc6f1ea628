// EncodedTicks: one stretch of ticks as rows: what a row of ticks and its rows of metrics hold,
// apart from their numbers. Made by folds and merges, copied by pg_row_copy. Values; pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "storage/encoded_vector.h"
#include "storage/model.h"
#include "storage/table_walk.h"

namespace stepwell {

// A row of metrics or recent.
struct EncodedColumn {
  SeriesNo series_no{};
  std::int64_t first_time_us = 0;
  std::int64_t last_time_us = 0;
  // Least and greatest; -1 = no sample has a batch.
  std::int32_t first_batch = -1;
  std::int32_t last_batch = -1;
  std::int32_t sample_count = 0;
  std::int32_t nan_count = 0;
  // Over the samples that are not NaN; meaningless if there are none. The sum of values that are integers
  // under a common divisor is exact, rounded once.
  double min = 0;
  double max = 0;
  double sum = 0;
  double last = 0;
  EncodedVector values;
  BitString presence;  // empty = every tick has a sample

  bool has_numbers() const { return sample_count > nan_count; }
};

// A row of ticks or recent_ticks, with the rows that share it.
struct EncodedTicks {
  std::uint32_t tick_group = 0;
  std::int32_t tick_count = 0;
  std::int64_t first_time_us = 0;
  std::int64_t last_time_us = 0;
  std::int32_t first_batch = -1;
  std::int32_t last_batch = -1;
  EncodedVector times;
  EncodedVector batches;
  std::vector<EncodedColumn> columns;  // those with samples
};

// Cuts `table` into stretches and encodes each. REQUIRES: its times ascend.
std::vector<EncodedTicks> EncodeTicks(const TickTable& table);

// The same piece by piece, for whoever walks a table for more than that: a stretch without columns, and one
// of them.
EncodedTicks EncodeTimes(std::uint32_t tick_group, const StretchSlice& stretch);
void AddColumn(const StretchSlice& stretch, const ColumnSlice& column, EncodedTicks& ticks);

}  // namespace stepwell
