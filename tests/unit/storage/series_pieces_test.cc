#include "storage/series_pieces.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

Series SeriesOf(std::size_t label_bytes) {
  Series series;
  series.definition.key = {"group", "name", {{"label", std::string(label_bytes, 'x')}}};
  return series;
}

TEST(SeriesPiecesTest, ASeriesTakesWhatItsTextsTake) {
  EXPECT_EQ(BytesOf(SeriesOf(1000)) - BytesOf(SeriesOf(100)), 900U);
  EXPECT_EQ(BytesOf(SeriesOf(9)), BytesOf(SeriesOf(1))) << "within its string";
  EXPECT_GT(BytesOf(SeriesOf(1)), sizeof(Series));
  EXPECT_EQ(BytesOf(std::vector<Series>(3, SeriesOf(100))), 3 * BytesOf(SeriesOf(100)));
}

TEST(SeriesPiecesTest, EachPieceIsOfAboutAsManyBytesWhateverTheLabels) {
  struct Case {
    const char* name;
    std::size_t series_bytes;
    std::int32_t count;
  };
  for (const Case& each : {Case{"few labels", 200, 10'000}, Case{"some", 1 << 10, 2048},
                           Case{"as many as may be", 35'000, 59}, Case{"more", 4 << 20, 1}}) {
    SCOPED_TRACE(each.name);
    SeriesPieces pieces;
    EXPECT_EQ(pieces.count(), SeriesPieces::kFirstCount);
    pieces.Note(500, 500 * each.series_bytes);
    EXPECT_EQ(pieces.count(), each.count);
    EXPECT_EQ(pieces.BytesExpected(10), 10 * each.series_bytes);
  }
}

TEST(SeriesPiecesTest, NothingWasReadIsNoDivisionByIt) {
  SeriesPieces pieces;
  pieces.Note(0, 0);
  EXPECT_EQ(pieces.count(), SeriesPieces::kFirstCount);
  EXPECT_GT(pieces.BytesExpected(1), 0U);
}

}  // namespace
}  // namespace stepwell
