// PagePlace: where the first page of a read by series and time ends, and how a statement goes on from there.
// A core: no connection.
//
//   const std::vector<std::int32_t> left = SeriesFrom(filter.series_nos, place);
//   sql: "series_no = any(left)" + FromPlaceSql(left, "$7", "$8")
//
// Not by comparing the pair (series_no, first_time_us): beside an array of series PostgreSQL 15 walks the index anew
// for each of them from that pair on, 30 ms for 200 series of 36 rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "storage/sql_text.h"

namespace stepwell {

// Rows are in the order of series_no, first_time_us.
struct PagePlace {
  std::int32_t series_no = 0;
  std::int64_t first_time_us = 0;
};

// Those at the place or behind it, in their order.
std::vector<std::int32_t> SeriesFrom(std::span<const std::int32_t> series_nos,
                                     const PagePlace& place);

// What leaves out rows of the place's own series that come before it; `left` are those of SeriesFrom, the others
// placeholders of the place. For a statement's "and".
SqlText FromPlaceSql(std::span<const std::int32_t> left, const SqlText& series_no,
                     const SqlText& first_time_us);

}  // namespace stepwell
