// What a flood of new series costs others: a trial that has many series, or all that it may have, whose definitions are looked
// up by turns.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/steady_time.h"
#include "storage/pg_array.h"
#include "storage/pg_sql.h"
#include "storage/series_labels.h"
#include "tests/contract/query/query_plan.h"
#include "tests/contract/store_test.h"

namespace stepwell {
namespace {

using testing::Connect;
using testing::StoreTest;

class SeriesTurnsTest : public StoreTest {
 protected:
  static constexpr int kRoom = 10;

  static std::vector<SeriesDefinition> Definitions(const std::string& prefix, int count) {
    std::vector<SeriesDefinition> definitions;
    for (int i = 0; i < count; ++i) {
      SeriesDefinition& definition = definitions.emplace_back();
      definition.key.metric_group = "flood";
      definition.key.name = absl::StrCat(prefix, i);
    }
    return definitions;
  }
  // How long `calls` calls of `count` each took, none of which has room.
  absl::Duration TimeRefused(TrialId trial_id, int calls, int count) {
    const SteadyTime begin = SteadyTime::Now();
    for (int i = 0; i < calls; ++i) {
      const auto numbers = ingest_->FindOrCreateSeries(
          trial_id, Definitions(absl::StrCat("new ", i, " "), count), kRoom);
      EXPECT_TRUE(numbers.ok()) << numbers.status();
      if (!numbers.ok()) break;
      EXPECT_EQ(*numbers, std::vector<SeriesNo>(static_cast<std::size_t>(count)));
    }
    return SteadyTime::Now() - begin;
  }
};

// Right after a flood nothing was analyzed. As a plain join each thousand read and hashed all 50,000.
TEST_F(SeriesTurnsTest, AreLookedUpByTheirKeysWhereNothingWasAnalyzed) {
  const TrialId trial_id = OpenWriter("t").trial_id;
  Run("alter table stepwell.series set (autovacuum_enabled = false)");
  const std::string hash = LabelsHash({});
  const auto connection = Connect(url_);
  const auto filled = connection->Exec(
      "insert into stepwell.series (trial_id, series_no, kind, metric_group, name, unit, labels, "
      "labels_hash) select $1, n, 1, 'flood', 's' || n, '', '{}', $2 from "
      "generate_series(1, 50000) n",
      {Value(trial_id), PgBytes{hash}});
  ASSERT_TRUE(filled.ok()) << filled.status();
  std::vector<std::string> groups, names, hashes;
  for (int i = 0; i < 1000; ++i) {
    groups.emplace_back("flood");
    names.push_back(absl::StrCat(i < 10 ? "s" : "new ", i + 1));
    hashes.push_back(hash);
  }
  const QueryPlan plan = ExplainQuery(
      *connection,
      {.sql = sql::kFindSeries,
       .params = {Value(trial_id), PgArray(groups), PgArray(names), PgParam::BytesArray(hashes)}});
  ASSERT_EQ(plan.scans.size(), 1U);
  EXPECT_EQ(plan.scans[0].node, "Index Scan");
  EXPECT_EQ(plan.loops(), 1000) << "one look for each";
}

TEST_F(SeriesTurnsTest, ATrialThatIsFullRestsForEachThatIsRefused) {
  const TrialId trial_id = OpenWriter("t").trial_id;
  ASSERT_TRUE(ingest_->FindOrCreateSeries(trial_id, Definitions("s", kRoom), kRoom).ok());
  // Many at once rest between their turns, few at once between their calls: 100 us for each but the last ones.
  EXPECT_GE(TimeRefused(trial_id, 1, 3000), absl::Milliseconds(200));
  EXPECT_GE(TimeRefused(trial_id, 11, 100), absl::Milliseconds(100));
}

TEST_F(SeriesTurnsTest, WhatATrialThatIsFullHasIsStillFoundInTheRightPlaces) {
  const TrialId trial_id = OpenWriter("t").trial_id;
  ASSERT_TRUE(ingest_->FindOrCreateSeries(trial_id, Definitions("s", kRoom), kRoom).ok());
  for (const int count : {50, 2500}) {
    SCOPED_TRACE(count);
    std::vector<SeriesDefinition> asked = Definitions("new ", count);
    std::vector<SeriesNo> expected(asked.size());
    for (std::size_t i = 0; i < kRoom; ++i) {
      const std::size_t place = i * static_cast<std::size_t>(count) / kRoom;
      asked[place] = Definitions("s", kRoom)[i];
      expected[place] = SeriesNo{static_cast<std::int32_t>(i) + 1};
    }
    const auto numbers = ingest_->FindOrCreateSeries(trial_id, asked, kRoom);
    ASSERT_TRUE(numbers.ok()) << numbers.status();
    EXPECT_EQ(*numbers, expected);
  }
}

}  // namespace
}  // namespace stepwell
