#include "storage/page_place.h"

#include <gtest/gtest.h>

#include <string>

namespace stepwell {
namespace {

TEST(PagePlaceTest, SeriesBeforeThePlaceAreDoneWithAndItsOwnIsNot) {
  const std::vector<std::int32_t> all = {9, 2, 5, 7};
  EXPECT_EQ(SeriesFrom(all, {.series_no = 5, .first_time_us = 1}),
            (std::vector<std::int32_t>{9, 5, 7}));
  EXPECT_EQ(SeriesFrom(all, {.series_no = 1, .first_time_us = 1}), all);
  EXPECT_EQ(SeriesFrom(all, {.series_no = 10, .first_time_us = 1}), std::vector<std::int32_t>());
}

TEST(PagePlaceTest, OfTheLastSeriesTheIndexAloneFindsTheRest) {
  const std::vector<std::int32_t> some = {5, 7};
  EXPECT_EQ(std::string(FromPlaceSql(some, "$1", "$2").c_str()),
            " and (series_no > $1 or first_time_us >= $2)");
  const std::vector<std::int32_t> one = {5};
  EXPECT_EQ(std::string(FromPlaceSql(one, "$1", "$2").c_str()),
            " and series_no = $1 and first_time_us >= $2");
}

}  // namespace
}  // namespace stepwell
