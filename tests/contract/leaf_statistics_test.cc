// Statistics of leaves: there after the first merges, not only when autovacuum comes, and made beside
// everything else.
#include <gtest/gtest.h>

#include "storage/leaf_growth.h"
#include "tests/contract/caps_store_test.h"

namespace stepwell {
namespace {

using testing::CapsStoreTest;
using testing::kEpoch;

class LeafStatistics : public CapsStoreTest {
 protected:
  // How often somebody asked for statistics of a table: autovacuum's are counted apart.
  std::int64_t AnalyzedCount(const std::string& table) {
    return Number(
        "select coalesce(sum(analyze_count), 0)::bigint from pg_stat_user_tables "
        "where schemaname = 'stepwell' and relname = '" +
        table + "'");
  }
  bool AwaitAnalyzed(const std::string& table) {
    for (const absl::Time deadline = absl::Now() + absl::Minutes(1); absl::Now() < deadline;) {
      EXPECT_TRUE(folds_->RecycleRecent(kEpoch).ok());
      if (AnalyzedCount(table) > 0) return true;
      absl::SleepFor(absl::Milliseconds(20));
    }
    return false;
  }
};

TEST_F(LeafStatistics, AreThereAfterTheFirstMerges) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 100);
  for (int merge = 0; merge * 100 < kAnalyzedFromRows; ++merge) {
    ASSERT_TRUE(folds_->RecycleRecent(kEpoch).ok());
    FillAndMerge(writer, 100, 20, testing::kNowUs + merge * std::int64_t{60'000'000});
  }
  for (const char* table : {"metrics_k0_20241004", "ticks_k0_20241004", "rollups_k0_20241004",
                            "rollup_ticks_k0_20241004"}) {
    EXPECT_TRUE(AwaitAnalyzed(table)) << table;
  }
  EXPECT_EQ(Number("select reltuples::bigint from pg_class where relname = 'metrics_k0_20241004'"),
            kAnalyzedFromRows);
  EXPECT_GT(Number("select count(*) from pg_stats where schemaname = 'stepwell' and tablename = "
                   "'metrics_k0_20241004' and attname = 'series_no'"),
            0);
}

// What queries compare, sort or join by has statistics; vectors, their widths and the like have none.
TEST_F(LeafStatistics, AreThoseOfKeysAlone) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 100);
  FillAndMerge(writer, 100, 20, testing::kNowUs);
  for (const char* table : {"metrics_k0_20241004", "ticks_k0_20241004", "rollups_k0_20241004",
                            "rollup_ticks_k0_20241004", "recent_0", "recent_rollups_0"}) {
    SCOPED_TRACE(table);
    Run(absl::StrCat("analyze stepwell.", table));
    const std::string analyzed = Text(
        absl::StrCat("select coalesce(string_agg(attname, ' '), '') from pg_attribute where "
                     "attrelid = 'stepwell.",
                     table, "'::regclass and attnum > 0 and attstattarget is distinct from 0"));
    EXPECT_NE(analyzed.find("trial_id"), std::string::npos);
    for (const char* vector : {"bits", "presence", "width", "dictionary"}) {
      EXPECT_EQ(analyzed.find(vector), std::string::npos) << analyzed;
    }
    EXPECT_EQ(Number(absl::StrCat("select count(*) from pg_stats where schemaname = 'stepwell' and "
                                  "tablename = '",
                                  table, "' and attname = 'bits'")),
              0);
  }
}

}  // namespace
}  // namespace stepwell
