// The largest batch there can be, which the end of no range can lie behind: one without an end holds it all the same.
#include "tests/contract/query/query_reads_fixture.h"

namespace stepwell {
namespace {

using ::testing::Contains;
using ::testing::Pair;

class LastBatchTest : public QueryReadsTest {
 protected:
  // One series of its own rows, so that they begin with the first of `batches`.
  void Record(const std::string& name, const std::vector<std::int32_t>& batches) {
    Feed feed = OpenWriter("job");
    TickTable table;
    table.tick_group = 1;
    table.batches = batches;
    TickColumn column;
    column.series_no = SeriesNo{AddSeries("training", name)};
    for (std::size_t i = 0; i < batches.size(); ++i) {
      table.times_us.push_back(kStartUs + static_cast<std::int64_t>(i));
      column.values.push_back(1);
    }
    table.columns = {column};
    Commit(feed, {table}, kStartUs);
  }

  // Samples of each series.
  std::map<std::string, std::uint64_t> CountsFrom(std::int32_t start, std::int32_t end = 0) {
    v1::QueryBucketsRequest request;
    *request.mutable_trial() = Ref();
    request.mutable_batch_range()->set_start_batch(start);
    request.mutable_batch_range()->set_end_batch(end);
    const auto response = reads_.QueryBuckets(request, Call());
    EXPECT_TRUE(response.ok()) << response.status();
    std::map<std::string, std::uint64_t> counts;
    if (!response.ok()) return counts;
    EXPECT_EQ(response->end(), end == 0 ? INT32_MAX + 1LL : INT32_MAX);
    for (const auto& series : response->series()) {
      for (const std::uint64_t count : series.counts()) counts[series.key().name()] += count;
    }
    return counts;
  }

  void ExpectAllOfThem(const char* where) {
    SCOPED_TRACE(where);
    EXPECT_THAT(CountsFrom(0), Contains(Pair("alone", 2)));
    EXPECT_THAT(CountsFrom(0), Contains(Pair("behind others", 2)));
    EXPECT_THAT(CountsFrom(10), Contains(Pair("alone", 2)));
    EXPECT_THAT(CountsFrom(10), Contains(Pair("behind others", 1)));
    EXPECT_THAT(CountsFrom(INT32_MAX), Contains(Pair("alone", 2)));
    EXPECT_EQ(CountsFrom(0, INT32_MAX),
              (std::map<std::string, std::uint64_t>{{"behind others", 1}}))
        << "an end is exclusive";
  }
};

TEST_F(LastBatchTest, IsInARangeWithoutAnEnd) {
  Record("alone", {INT32_MAX, INT32_MAX});
  Record("behind others", {-1, 5, INT32_MAX});
  ExpectAllOfThem("in heads");
  Fold();
  ExpectAllOfThem("in recent rows");
  Merge(1);
  ExpectAllOfThem("in merged rows");
}

}  // namespace
}  // namespace stepwell
