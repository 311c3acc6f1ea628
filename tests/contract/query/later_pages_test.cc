// Pages behind the first ask for an array of series: in a leaf without statistics PostgreSQL walks through
// rows of other series for them. Leaves are analyzed after their first merges, so that it does not.
#include "storage/leaf_growth.h"
#include "tests/contract/query/query_plan.h"
#include "tests/contract/query/query_reads_fixture.h"

namespace stepwell {
namespace {

constexpr int kSeriesCount = 40;
constexpr int kAskedCount = 8;
constexpr int kMergeCount = 60;

class LaterPagesTest : public QueryReadsTest {
 protected:
  void FillLeaf() {
    Feed feed = OpenWriter("job");
    std::vector<std::int32_t> series;
    for (int i = 0; i < kSeriesCount; ++i) {
      series.push_back(AddSeries(i % 5 == 0 ? "asked" : "other", absl::StrCat("value_", i)));
    }
    std::int64_t at = kStartUs;
    for (int merge = 0; merge < kMergeCount; ++merge) {
      TickTable table;
      table.tick_group = 1;
      for (int i = 0; i < 10; ++i) {
        table.times_us.push_back(at += 1'000'000);
        table.batches.push_back(-1);
      }
      for (const std::int32_t series_no : series) {
        TickColumn column;
        column.series_no = SeriesNo{series_no};
        for (int i = 0; i < 10; ++i) column.values.push_back(i * 0.5 + merge);
        table.columns.push_back(std::move(column));
      }
      Commit(feed, {std::move(table)}, kStartUs);
      Fold();
      Merge(1);
    }
  }
  // By us: autovacuum's are counted apart.
  void AwaitAnalyzed(PgConnection& sql) {
    const absl::Time deadline = absl::Now() + absl::Minutes(1);
    for (bool analyzed = false; !analyzed; absl::SleepFor(absl::Milliseconds(20))) {
      ASSERT_LT(absl::Now(), deadline);
      ASSERT_TRUE(folds_->RecycleRecent(kEpoch).ok());
      const auto row = sql.Exec(
          "select count(*) = 2 from pg_stat_user_tables where analyze_count > 0 and "
          "relname like any (array['metrics\\_k0\\_%', 'rollup\\_ticks\\_k0\\_%'])");
      ASSERT_TRUE(row.ok()) << row.status();
      analyzed = row->Bool(0, 0);
    }
  }
};

TEST_F(LaterPagesTest, LookAtTheRowsThatAreAskedForAndHardlyAnyOther) {
  static_assert(kSeriesCount * kMergeCount > kAnalyzedFromRows);
  FillLeaf();
  const auto sql = testing::Connect(url_);
  ASSERT_NO_FATAL_FAILURE(AwaitAnalyzed(*sql));
  std::vector<PgStatement> declared;
  PgReader reader({.url = url_, .watch = [&](std::span<const ReadStatement> statements) {
                     for (const ReadStatement& one : statements) {
                       if (absl::StartsWith(one.statement.sql.c_str(), "declare")) {
                         declared.push_back(one.statement);
                       }
                     }
                   }});
  const QueryReads reads(QuerySources{reader, heads_, RealClock::Get(), liveness_});
  v1::QueryBucketsRequest request;
  *request.mutable_trial() = Ref();
  request.add_selectors()->set_metric_group("asked");
  request.set_max_buckets(100);
  request.set_resolution(v1::RESOLUTION_RAW);
  const auto response = reads.QueryBuckets(request, Call());
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->series_size(), kAskedCount);
  ASSERT_FALSE(declared.empty()) << "more rows than a page has";
  for (const PgStatement& statement : declared) {
    SCOPED_TRACE(statement.sql.c_str());
    EXPECT_LE(ExplainQuery(*sql, statement).rows(), kAskedCount * kMergeCount);
  }
}

}  // namespace
}  // namespace stepwell
