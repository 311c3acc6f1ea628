// What PostgreSQL does for the texts that a trial of three hundred series in six leaves is asked by, and a small one is not:
// leaves that are found by their days instead of by name, cursors that are declared at once, later pages that begin where the
// first one ended, and keys of rollups whose values are remembered. As for every other text: rows are found by an index of the
// trial, in its own leaves, and three times the trials change nothing.
#include "tests/contract/query/many_trials.h"
#include "tests/contract/query/query_plan.h"

namespace stepwell {
namespace {

// So many, with so many series each, that no leaf is small enough to be read whole, of the few neither.
constexpr int kFewTrials = 500;
constexpr int kManyTrials = 1500;
constexpr int kOthersSeries = 40;
constexpr int kWideSeries = 140;                     // fewer than a page has rows
constexpr int kAllSeries = 260;                      // more
constexpr int kLeafDays = 5;                         // more than are named
constexpr int kTicks = 30;                           // of a leaf
constexpr std::int64_t kDayApartUs = 3'600'000'000;  // of samples of one leaf and the next

// How a text says what it is of.
constexpr char kByDays[] = "received_day between";
constexpr char kDeclares[] = "declare ";
constexpr char kFromPlace[] = "series_no > ";

class WidePlansTest : public ManyTrialsTest {
 protected:
  WidePlansTest() {
    Run("insert into stepwell.projects (name) select 'project-' || n from generate_series(1, 2000) "
        "n");
    FeedTrial();
  }

  void FeedTrial() {
    Feed feed = OpenWriter("job");
    std::vector<std::int32_t> series;
    for (int i = 0; i < kAllSeries; ++i) {
      series.push_back(AddSeries(i < kWideSeries ? "wide" : "other", absl::StrCat("value_", i)));
    }
    const auto commit = [&](int stretch, int received_day) {
      TickTable table;
      table.tick_group = 1;
      for (int i = 0; i < kTicks; ++i) {
        table.times_us.push_back(kStartUs + stretch * kDayApartUs + i * INT64_C(10'000'000));
        table.batches.push_back(stretch * kTicks + i);
      }
      for (const std::int32_t series_no : series) {
        TickColumn column;
        column.series_no = SeriesNo{series_no};
        for (int i = 0; i < kTicks; ++i) column.values.push_back((i * 7 + series_no) % 100);
        table.columns.push_back(std::move(column));
      }
      Commit(feed, {std::move(table)}, kStartUs + received_day * kDayUs);
    };
    for (int day = 0; day < kLeafDays; ++day) commit(day, day);
    Fold();
    for (int i = 0; i < kLeafDays; ++i) Merge(1);
    commit(kLeafDays, kLeafDays - 1);  // and what is not merged yet
    Fold();
    JoinSome();
  }

  // Rollups of every other series go where they are once they are joined, so that no table that is read is empty.
  void JoinSome() {
    for (int segment = 0; segment < 4; ++segment) {
      const std::string rollups = absl::StrCat("stepwell.recent_rollups_", segment);
      const std::string ticks = absl::StrCat("stepwell.recent_rollup_ticks_", segment);
      Run(absl::StrCat("with moved as (delete from ", rollups,
                       " where series_no % 2 = 0 returning *) ",
                       "insert into stepwell.rollups select * from moved; ",
                       "insert into stepwell.rollup_ticks select * from ", ticks));
    }
  }

  static void SetRange(int first_day, int last_day, v1::TimeRange& range) {
    range.set_start_time_us(kStartUs + first_day * kDayApartUs);
    range.set_end_time_us(kStartUs + last_day * kDayApartUs + kTicks * INT64_C(10'000'000));
  }

  std::vector<ReadStatement> AskAll() {
    std::vector<ReadStatement> asked;
    PgReader reader({.url = url_, .watch = [&](std::span<const ReadStatement> statements) {
                       for (const ReadStatement& one : statements) {
                         if (one.query != ReadQuery::kControl) asked.push_back(one);
                       }
                     }});
    const QueryReads reads(QuerySources{reader, heads_, RealClock::Get(), liveness_});
    const auto chart = [&](v1::Resolution resolution, const char* group, int first_day,
                           int last_day) {
      v1::QueryBucketsRequest request;
      *request.mutable_trial() = Ref();
      request.set_resolution(resolution);
      request.set_max_buckets(50);
      if (*group != '\0') request.add_selectors()->set_metric_group(group);
      SetRange(first_day, last_day, *request.mutable_time_range());
      const auto answer = reads.QueryBuckets(request, Call());
      EXPECT_TRUE(answer.ok()) << answer.status();
      EXPECT_EQ(answer.ok() ? answer->series_size() : -1,
                *group != '\0' ? kWideSeries : kAllSeries);
    };
    for (const auto resolution : {v1::RESOLUTION_RAW, v1::RESOLUTION_10_SECONDS}) {
      chart(resolution, "wide", 0, 0);  // one page
      chart(resolution, "wide", 0, 1);  // two, of which the first one's rollups are remembered
      chart(resolution, "", 1, 2);      // more series than a page has rows
      chart(resolution, "wide", 0, kLeafDays - 1);  // leaves by their days
    }
    std::string cursor;
    std::int64_t sample_count = 0;
    const auto samples = [&](int message_max) {
      v1::ReadSamplesRequest request;
      *request.mutable_trial() = Ref();
      request.set_cursor(cursor);
      int message_count = 0;
      const absl::Status status =
          reads.ReadSamples(request, Call(), [&](const v1::ReadSamplesResponse& message) {
            cursor = message.cursor();
            sample_count += message.values_size();
            return ++message_count < message_max;
          });
      EXPECT_TRUE(status.ok() || absl::IsCancelled(status)) << status;
    };
    samples(3);
    samples(INT32_MAX);
    EXPECT_EQ(sample_count, kAllSeries * (kLeafDays + 1) * kTicks);
    Heads heads;  // that know no newest values yet
    heads.RecoveryStarted({}, FoldNo{});
    const QueryReads fresh(QuerySources{reader, heads, RealClock::Get(), liveness_});
    v1::LatestValuesRequest latest;
    *latest.mutable_trial() = Ref();
    EXPECT_TRUE(fresh.LatestValues(latest, Call()).ok());
    return asked;
  }
};

TEST_F(WidePlansTest, ManySeriesAndLeavesAreReadByAnIndexToo) {
  const std::vector<PgStatement> any = {{"select 1", {}, true}};
  ASSERT_TRUE(connection_->ExecAll(any).ok());
  ASSERT_TRUE(connection_->keeps_statements());
  CopyTrial(1, kFewTrials, AllTables(), kOthersSeries);
  const std::set<std::string> leaves = LeavesOfTrial();
  ASSERT_EQ(leaves.size(), 4u * kLeafDays);
  std::vector<QueryPlan> of_few;
  for (const ReadStatement& one : AskAll()) {
    of_few.push_back(ExplainQuery(*connection_, one.statement));
  }
  CopyTrial(kFewTrials + 1, kManyTrials, AllTables(), kOthersSeries);
  const std::vector<ReadStatement> all = AskAll();
  ASSERT_EQ(all.size(), of_few.size()) << "the same calls ask the same";

  std::map<std::pair<ReadQuery, std::string>, int> seen;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string text = all[i].statement.sql.c_str();
    SCOPED_TRACE(text);
    for (const char* way : {kByDays, kDeclares, kFromPlace}) {
      seen[{all[i].query, way}] += absl::StrContains(text, way) ? 1 : 0;
    }
    const bool has_values = absl::StrContains(text, "bits");
    if (all[i].query == ReadQuery::kRollups && !has_values) ++seen[{all[i].query, "keys"}];
    const QueryPlan plan = ExplainQuery(*connection_, all[i].statement);
    EXPECT_THAT(plan.Complaints(leaves, false), ::testing::IsEmpty());
    // One for each series, where they are asked for as an array.
    ExpectFlat(plan, of_few[i], absl::StrContains(text, "any($") ? kAllSeries : 0);
  }
  for (const ReadQuery query : {ReadQuery::kRows, ReadQuery::kRollups}) {
    for (const char* way : {kByDays, kDeclares, kFromPlace}) {
      const int count = seen[{query, way}];
      EXPECT_GT(count, 0) << way << " is in no text of ReadQuery " << static_cast<int>(query);
    }
  }
  const int of_keys = seen[{ReadQuery::kRollups, "keys"}];
  EXPECT_GT(of_keys, 0) << "no read of rollups had their values by heart";
  const int newest_by_days = seen[{ReadQuery::kNewestRows, kByDays}];
  EXPECT_GT(newest_by_days, 0);
}

}  // namespace
}  // namespace stepwell
