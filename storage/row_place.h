// RowPlace: what places an encoded row in the tables of samples. Values.
#pragma once

#include <cstdint>

#include "storage/encoded_ticks.h"

namespace stepwell {

// What the rows of one stretch have in common.
struct RowPlace {
  TrialId trial_id{};
  WriterNo writer_no{};
  std::int64_t tick_no = 0;
  std::int32_t received_day = 0;  // days since 1970
  std::int16_t keep_class = 0;
};

// Only rows of recent and recent_ticks have it.
struct RecentPlace {
  std::int16_t segment = 0;
  FoldNo fold_no{};
  std::int64_t received_time_us = 0;
};

struct RecentTicksRow {
  RowPlace place;
  RecentPlace recent;
  // Its columns have a series_no and nothing else.
  EncodedTicks ticks;
};

struct RecentColumnRow {
  RowPlace place;
  EncodedColumn column;
};

}  // namespace stepwell
