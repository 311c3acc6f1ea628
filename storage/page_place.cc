#include "storage/page_place.h"

#include <algorithm>
#include <iterator>

namespace stepwell {

std::vector<std::int32_t> SeriesFrom(std::span<const std::int32_t> series_nos,
                                     const PagePlace& place) {
  std::vector<std::int32_t> left;
  std::copy_if(series_nos.begin(), series_nos.end(), std::back_inserter(left),
               [&](std::int32_t series_no) { return series_no >= place.series_no; });
  return left;
}

SqlText FromPlaceSql(std::span<const std::int32_t> left, const SqlText& series_no,
                     const SqlText& first_time_us) {
  // By the index where it can.
  if (left.size() == 1) {
    return SqlCat({" and series_no = ", series_no, " and first_time_us >= ", first_time_us});
  }
  return SqlCat({" and (series_no > ", series_no, " or first_time_us >= ", first_time_us, ")"});
}

}  // namespace stepwell
