#include "server/query_wire.h"

#include <gmock/gmock.h>

namespace stepwell {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Each series of a trial is held against each selector of a request, which may have 10,000 numbers: Matches looks
// through them by halves.
TEST(QueryWireTest, NumbersOfSeriesComeSortedAndEachOnce) {
  v1::QueryBucketsRequest request;
  request.add_selectors()->add_series_nos(9);
  v1::SeriesSelector& many = *request.add_selectors();
  for (const std::int32_t no : {9, 3, -1, 7, 3, 9}) many.add_series_nos(no);
  request.add_selectors()->set_name("any number");
  const auto selections = CheckSelectors(request.selectors());
  ASSERT_TRUE(selections.ok()) << selections.status();
  EXPECT_THAT(selections->at(0).series_nos, ElementsAre(9));
  EXPECT_THAT(selections->at(1).series_nos, ElementsAre(-1, 3, 7, 9));
  EXPECT_THAT(selections->at(2).series_nos, IsEmpty());
}

}  // namespace
}  // namespace stepwell
