// QueryReads beside folds and merges, its refusals, its pages, and what it knows of heads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "base/steady_time.h"
#include "base/worker.h"
#include "storage/pg_connection.h"
#include "tests/contract/query/query_reads_fixture.h"
#include "tests/support/codec_vectors.h"

namespace stepwell {
namespace {

using ::testing::HasSubstr;
using testing::TestSeed;

TEST_F(QueryReadsTest, ReadsBesideFoldsAndMergesSeeEachSampleOnce) {
  Feed feed = OpenWriter("job");
  const std::int32_t series_no = AddSeries("g", "counting");
  std::atomic<bool> stop = false;
  std::atomic<int> read_count = 0;
  const auto read_on = [&] {
    std::size_t seen_before = 0;
    while (!stop) {
      v1::ReadSamplesRequest request;
      *request.mutable_trial() = Ref();
      std::vector<Point> got;
      for (const auto& message : ReadMessages(request)) Append(message, got);
      // Value i at place i: none twice, none missing.
      for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(got[i].value, static_cast<double>(i)) << "of " << got.size();
      }
      ASSERT_GE(got.size(), seen_before) << "what was read once is gone";
      seen_before = got.size();
      ++read_count;
    }
  };
  Worker one("reader", read_on);
  Worker two("reader", read_on);
  const std::uint64_t seed = TestSeed();
  std::mt19937_64 random(seed);
  double value = 0;
  for (int round = 0; (round < 150 || read_count < 40) && round < 5000; ++round) {
    TickTable table;
    table.tick_group = 1;
    TickColumn column;
    column.series_no = SeriesNo{series_no};
    for (int i = 0; i < 5; ++i) {
      table.times_us.push_back(kStartUs + static_cast<std::int64_t>(value) * 1000);
      table.batches.push_back(static_cast<std::int32_t>(value));
      column.values.push_back(value++);
    }
    table.columns.push_back(std::move(column));
    Commit(feed, {std::move(table)}, kStartUs);
    if (random() % 3 == 0) Fold();
    if (random() % 5 == 0) Merge(1);
  }
  stop = true;
  one.Join();
  two.Join();
  EXPECT_GE(read_count, 40);
}

// Does something before the snapshot of the database, and something behind it.
class StoreWithABreak final : public ReadStore {
 public:
  StoreWithABreak(
      ReadStore& store, std::function<void()> before, std::function<void()> after = [] {})
      : store_(store), before_(std::move(before)), after_(std::move(after)) {}
  std::optional<TrialId> KnownTrial(const TrialSelector& selector,
                                    const ProjectFilter& projects) const override {
    return store_.KnownTrial(selector, projects);
  }
  absl::StatusOr<TrialId> FindTrial(const TrialSelector& selector, const ProjectFilter& projects,
                                    SteadyTime deadline) override {
    return store_.FindTrial(selector, projects, deadline);
  }
  absl::StatusOr<bool> IsOwnedUnder(std::int64_t owner_epoch, SteadyTime deadline) override {
    return store_.IsOwnedUnder(owner_epoch, deadline);
  }
  absl::StatusOr<std::unique_ptr<ReadSnapshot>> OpenSnapshot(SteadyTime deadline) override {
    before_();
    auto snapshot = store_.OpenSnapshot(deadline);
    // It is of the moment of its first statement.
    EXPECT_TRUE(snapshot.ok() && (*snapshot)->ReadUsage(TrialId{1}).ok());
    after_();
    return snapshot;
  }

 private:
  ReadStore& store_;
  const std::function<void()> before_;
  const std::function<void()> after_;
};

TEST_F(QueryReadsTest, AFoldBetweenThePinAndTheLedgerCountsItsSamplesOnce) {
  std::vector<Feed> feeds = {OpenWriter("job"), OpenWriter("job")};
  const std::int32_t series_no = AddSeries("g", "counting");
  std::mt19937_64 random(TestSeed());
  std::function<void()> between = [] {};
  StoreWithABreak store(reader_, [&] { between(); });
  const QueryReads reads(QuerySources{store, heads_, RealClock::Get(), liveness_});
  std::int64_t committed = 0;
  const auto commit = [&] {
    TickTable table;
    table.tick_group = 1;
    table.times_us = {kStartUs + committed};
    table.batches = {-1};
    table.columns.push_back({.series_no = SeriesNo{series_no}, .values = {1}, .presence = {}});
    Commit(feeds[random() % feeds.size()], {std::move(table)}, kStartUs);
    ++committed;
  };
  commit();
  for (int round = 0; round < 40; ++round) {
    for (std::uint64_t i = random() % 4; i > 0; --i) commit();
    if (random() % 3 == 0) Fold();
    const std::int64_t held_when_asked = committed;
    between = [&, what = random() % 4] {
      if (what == 1) commit();  // after the pin: may be seen by nobody yet
      if (what >= 1) Fold();
      if (what == 3) Merge(1);
    };
    v1::GetTrialRequest request;
    *request.mutable_trial() = Ref();
    const auto answer = reads.GetTrial(request, Call());
    ASSERT_TRUE(answer.ok()) << answer.status();
    const std::int64_t held = answer->completeness().samples_held();
    ASSERT_GE(held, held_when_asked);
    ASSERT_LE(held, committed);
    ASSERT_EQ(answer->trial().sample_count(), held);
  }
}

// Rows of leaves do not say of which fold they are: who has pinned the heads before keeps folds out of leaves.
TEST_F(QueryReadsTest, WhatIsFoldedInBulkBehindThePinIsReadOnce) {
  Feed feed = OpenWriter("job");
  const std::int32_t series_no = AddSeries("g", "counting");
  StoreWithABreak store(reader_, [&] { FoldBulk(); });
  const QueryReads reads(QuerySources{store, heads_, RealClock::Get(), liveness_});
  for (std::int64_t round = 1; round <= 3; ++round) {
    TickTable table;
    table.tick_group = 1;
    table.times_us = {kStartUs + round * 1000};
    table.batches = {-1};
    table.columns.push_back({.series_no = SeriesNo{series_no}, .values = {1}, .presence = {}});
    Commit(feed, {std::move(table)}, kStartUs);
    v1::ReadSamplesRequest request;
    *request.mutable_trial() = Ref();
    std::int64_t read = 0;
    const absl::Status status =
        reads.ReadSamples(request, Call(), [&](const v1::ReadSamplesResponse& message) {
          read += message.values_size();
          return true;
        });
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(read, round);
  }
  EXPECT_EQ(bulk_fold_count_, 0) << "the reader was there";
  FoldBulk();
  EXPECT_EQ(heads_.UnfoldedSampleCount(trial_id_), 0);
}

TEST_F(QueryReadsTest, WhoReadsATrialThatIsFoldedInBulkWaitsUntilItsDeadline) {
  OpenWriter("job");
  ASSERT_TRUE(heads_.BeginBulk(trial_id_));
  v1::GetTrialRequest request;
  *request.mutable_trial() = Ref();
  ReadCall call = Call();
  call.deadline = SteadyTime::Now() + absl::Milliseconds(50);
  EXPECT_TRUE(absl::IsUnavailable(reads_.GetTrial(request, call).status()));
  heads_.EndBulk(trial_id_);
  EXPECT_TRUE(reads_.GetTrial(request, Call()).ok());
}

TEST_F(QueryReadsTest, AFoldWithinAListOfTrialsCountsItsSamplesOnce) {
  Feed feed = OpenWriter("job");
  const std::int32_t series_no = AddSeries("g", "counting");
  int round = 1;
  // In turn: with the pin before the snapshot and with the snapshot before the fold, both must hold.
  const auto fold_if = [&](bool now) {
    if (now) Fold();
  };
  StoreWithABreak store(
      reader_, [&] { fold_if(round % 2 == 1); }, [&] { fold_if(round % 2 == 0); });
  const QueryReads reads(QuerySources{store, heads_, RealClock::Get(), liveness_});
  for (; round <= 6; ++round) {
    TickTable table;
    table.tick_group = 1;
    table.times_us = {kStartUs + round};
    table.batches = {-1};
    table.columns.push_back({.series_no = SeriesNo{series_no}, .values = {1}, .presence = {}});
    Commit(feed, {std::move(table)}, kStartUs);
    const auto answer = reads.ListTrials({}, Call());
    ASSERT_TRUE(answer.ok()) << answer.status();
    ASSERT_EQ(answer->trials_size(), 1);
    EXPECT_EQ(answer->trials(0).sample_count(), round);
    EXPECT_EQ(answer->completeness().samples_held(), round);
    EXPECT_EQ(answer->trials(0).first_sample_time_us(), kStartUs + 1);
    EXPECT_EQ(answer->trials(0).last_sample_time_us(), kStartUs + round);
  }
}

TEST_F(QueryReadsTest, BadRequestsNameTheFieldAndWhatIsAllowed) {
  OpenWriter("job");
  struct Row {
    std::string name;
    std::function<absl::Status()> read;
    absl::StatusCode code;
    std::string says;
  };
  const auto samples = [&](auto change) {
    return [this, change] {
      v1::ReadSamplesRequest request;
      *request.mutable_trial() = Ref();
      change(request);
      return reads_.ReadSamples(request, Call(), [](const auto&) { return true; });
    };
  };
  const auto buckets = [&](auto change) {
    return [this, change] {
      v1::QueryBucketsRequest request;
      *request.mutable_trial() = Ref();
      change(request);
      return reads_.QueryBuckets(request, Call()).status();
    };
  };
  const Row rows[] = {
      {"no trial", samples([](auto& r) { r.clear_trial(); }), absl::StatusCode::kInvalidArgument,
       "trial is missing; allowed: trial_id, or external_id"},
      {"both", samples([](auto& r) { r.mutable_trial()->set_trial_id(1); }),
       absl::StatusCode::kInvalidArgument, "trial has both"},
      {"unknown name", samples([](auto& r) { r.mutable_trial()->set_external_id("x"); }),
       absl::StatusCode::kNotFound, "there is no trial 'x' in project 'default'"},
      {"NUL", samples([](auto& r) { r.mutable_trial()->set_external_id(std::string("a\0b", 3)); }),
       absl::StatusCode::kInvalidArgument, "trial.external_id holds a NUL"},
      {"range", samples([](auto& r) {
         r.mutable_time_range()->set_start_time_us(5);
         r.mutable_time_range()->set_end_time_us(4);
       }),
       absl::StatusCode::kInvalidArgument, "time_range.end_time_us is 4; allowed: 0, or"},
      {"size", samples([](auto& r) { r.set_page_samples(-1); }), absl::StatusCode::kInvalidArgument,
       "page_samples is -1; allowed: 0 (= 10000) ... 100000"},
      {"cursor", samples([](auto& r) { r.set_cursor("zzz"); }), absl::StatusCode::kInvalidArgument,
       "cursor: this is no token of ours"},
      {"batches", buckets([](auto& r) { r.mutable_batch_range()->set_start_batch(-1); }),
       absl::StatusCode::kInvalidArgument, "batch_range.start_batch is -1"},
      {"group_by", buckets([](auto& r) { r.add_group_by("rank"); }),
       absl::StatusCode::kInvalidArgument, "group_by is given without AGGREGATION_ACROSS"},
      {"selector", buckets([](auto& r) { r.add_selectors()->set_name(std::string(2000, 'x')); }),
       absl::StatusCode::kInvalidArgument, "selectors[0].name has 2000 bytes; allowed: 0 ... 1024"},
      {"attempt",
       [this] {
         v1::SummarizeTimingsRequest request;
         *request.mutable_trial() = Ref();
         request.set_attempt(9);
         return reads_.SummarizeTimings(request, Call()).status();
       },
       absl::StatusCode::kNotFound, "has no attempt 9; it has 1"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const absl::Status status = row.read();
    EXPECT_EQ(status.code(), row.code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(row.says));
  }
}

TEST_F(QueryReadsTest, TooManyBucketsAreRefusedWithTheRemedy) {
  OpenWriter("job");
  std::vector<SeriesDefinition> definitions(300);
  for (int i = 0; i < 300; ++i) definitions[i].key = {"g", absl::StrCat("s", i), {}};
  ASSERT_TRUE(ingest_->FindOrCreateSeries(trial_id_, definitions, 10'000).ok());
  v1::QueryBucketsRequest request;
  *request.mutable_trial() = Ref();
  request.mutable_time_range()->set_start_time_us(1);
  request.mutable_time_range()->set_end_time_us(1'000'000);
  request.set_max_buckets(10'000);
  EXPECT_THAT(reads_.QueryBuckets(request, Call()).status().ToString(),
              HasSubstr("RESOURCE_EXHAUSTED: 300 series times 10000 buckets is over 1000000: lower "
                        "max_buckets to 3333"));
  request.set_max_buckets(3'333);
  EXPECT_TRUE(reads_.QueryBuckets(request, Call()).ok());
}

TEST_F(QueryReadsTest, SeriesAreFoldedAcrossOrByLabels) {
  Feed feed = OpenWriter("job");
  std::vector<std::int32_t> series;
  for (const char* device : {"a", "a", "b"}) {
    series.push_back(AddSeries("gpu", "util", SeriesKind::kGauge,
                               {{"core", absl::StrCat(series.size())}, {"device", device}}));
  }
  TickTable table;
  table.tick_group = 1;
  table.times_us = {kStartUs, kStartUs + 1};
  table.batches = {0, 1};
  for (const std::int32_t series_no : series) {
    TickColumn column;
    column.series_no = SeriesNo{series_no};
    column.values = {1.0 * series_no, 10.0 * series_no};
    table.columns.push_back(column);
  }
  Commit(feed, {table}, kStartUs);
  v1::QueryBucketsRequest request;
  *request.mutable_trial() = Ref();
  request.set_max_buckets(1);
  request.set_aggregation(v1::AGGREGATION_ACROSS);
  auto response = reads_.QueryBuckets(request, Call());
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->series_size(), 1);
  EXPECT_EQ(response->series(0).counts(0), 6u);
  EXPECT_EQ(response->series(0).key().labels_size(), 0);
  EXPECT_EQ(response->series(0).series_nos_size(), 3);
  request.add_group_by("device");
  response = reads_.QueryBuckets(request, Call());
  ASSERT_EQ(response->series_size(), 2);
  EXPECT_EQ(response->series(0).key().labels().at("device"), "a");
  EXPECT_EQ(response->series(0).maxs(0), 10.0 * series[1]);
  EXPECT_EQ(response->series(1).counts(0), 2u);
}

// All series of a machine have one time, so which is the newest is a matter of order.
TEST_F(QueryReadsTest, TheLastOfSeveralSeriesIsTheSameFromSamplesAndFromRollups) {
  Feed feed = OpenWriter("job");
  TickTable table;
  table.tick_group = 1;
  table.times_us = {kStartUs, kStartUs + 1'000'000};
  table.batches = {0, 1};
  for (int i = 0; i < 40; ++i) {
    TickColumn& column = table.columns.emplace_back();
    column.series_no =
        SeriesNo{AddSeries("gpu", "util", SeriesKind::kGauge, {{"device", absl::StrCat(i)}})};
    column.values = {1.0 * i, 10.0 * i};
  }
  Commit(feed, {table}, kStartUs);
  v1::QueryBucketsRequest request;
  *request.mutable_trial() = Ref();
  request.set_max_buckets(1);
  request.set_aggregation(v1::AGGREGATION_ACROSS);
  for (const bool merged : {false, true}) {
    if (merged) {
      Fold();
      Merge(1);
    }
    for (const auto resolution : {v1::RESOLUTION_RAW, v1::RESOLUTION_10_SECONDS}) {
      request.set_resolution(resolution);
      const auto response = reads_.QueryBuckets(request, Call());
      ASSERT_TRUE(response.ok()) << response.status();
      EXPECT_EQ(response->resolution(), resolution);
      ASSERT_EQ(response->series_size(), 1);
      EXPECT_EQ(response->series(0).counts(0), 80u);
      EXPECT_EQ(response->series(0).lasts(0), 390) << merged << resolution;
    }
  }
}

// An older release writes ledger lines without knowing of has_rollups, and makes no rollups.
TEST_F(QueryReadsTest, ChartsOfRowsWithoutRollupsAreOfSamples) {
  Feed feed = OpenWriter("job");
  TickTable table;
  table.tick_group = 1;
  TickColumn column;
  column.series_no = SeriesNo{AddSeries("gpu", "util")};
  for (int i = 0; i < 300; ++i) {
    table.times_us.push_back(kStartUs + i * std::int64_t{1'000'000});
    table.batches.push_back(i);
    column.values.push_back(i);
  }
  table.columns = {column};
  Commit(feed, {table}, kStartUs);
  Fold();
  Merge(1);
  v1::QueryBucketsRequest request;
  *request.mutable_trial() = Ref();
  request.set_max_buckets(2);
  auto response = reads_.QueryBuckets(request, Call());
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->resolution(), v1::RESOLUTION_60_SECONDS);

  const auto sql = PgConnection::Open({.url = url_});
  ASSERT_TRUE(sql.ok());
  ASSERT_TRUE(
      (*sql)
          ->ExecScript("delete from stepwell.rollups; delete from stepwell.usage_lines; "
                       "insert into stepwell.usage_lines (trial_id, received_day, keep_class, "
                       "metric_group, row_count, sample_count, byte_count, first_time_us, "
                       "last_time_us) select trial_id, received_day, keep_class, 'gpu', 1, "
                       "sample_count, 1, first_time_us, last_time_us from stepwell.metrics")
          .ok());
  response = reads_.QueryBuckets(request, Call());
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->resolution(), v1::RESOLUTION_RAW);
  ASSERT_EQ(response->series_size(), 1);
  std::uint64_t count = 0;
  for (const std::uint64_t bucket : response->series(0).counts()) count += bucket;
  EXPECT_EQ(count, 300u);
}

TEST_F(QueryReadsTest, PagesGoOnWhereTheyEndedAndKnowTheirQuery) {
  OpenWriter("job");
  for (int i = 0; i < 7; ++i) AddSeries("g", absl::StrCat("s", i));
  v1::ListSeriesRequest request;
  *request.mutable_trial() = Ref();
  request.set_page_size(3);
  std::vector<std::int32_t> numbers;
  for (;;) {
    const auto page = reads_.ListSeries(request, Call());
    ASSERT_TRUE(page.ok()) << page.status();
    for (const auto& series : page->series()) numbers.push_back(series.series_no());
    if (page->next_page_token().empty()) break;
    request.set_page_token(page->next_page_token());
  }
  EXPECT_EQ(numbers, (std::vector<std::int32_t>{1, 2, 3, 4, 5, 6, 7}));
  request.mutable_selector()->set_name("s1");
  EXPECT_THAT(reads_.ListSeries(request, Call()).status().ToString(),
              HasSubstr("page_token: this token belongs to another query"));
}

TEST_F(QueryReadsTest, AgentRule06_RanksThatNeverOpenedAreNamed) {
  OpenWriter("first start", false, 0, 8);
  OpenWriter("second start", false, 2, 4);
  OpenWriter("second start", true, 0, 4);
  v1::GetTrialRequest get;
  *get.mutable_trial() = Ref();
  auto trial = reads_.GetTrial(get, Call());
  ASSERT_TRUE(trial.ok()) << trial.status();
  EXPECT_THAT(trial->completeness().ranks_missing(), ::testing::ElementsAre(0, 1, 3));
  EXPECT_EQ(trial->completeness().ranks_missing_count(), 3);
  EXPECT_FALSE(trial->completeness().contiguous());
  // Every answer about the trial says so.
  v1::LatestValuesRequest latest;
  *latest.mutable_trial() = Ref();
  EXPECT_EQ(reads_.LatestValues(latest, Call())->completeness().ranks_missing_count(), 3);
  for (const std::int32_t rank : {0, 1, 3}) OpenWriter("second start", false, rank, 4);
  trial = reads_.GetTrial(get, Call());
  EXPECT_EQ(trial->completeness().ranks_missing_count(), 0);
  EXPECT_EQ(trial->completeness().ranks_missing_size(), 0);
}

TEST_F(QueryReadsTest, TrialsKnowWhatIsInHeads) {
  Feed feed = OpenWriter("job");
  const std::int32_t series_no = AddSeries("g", "s");
  TickTable table;
  table.tick_group = 1;
  table.times_us = {kStartUs, kStartUs + 5};
  table.batches = {-1, -1};
  table.columns.resize(1);
  table.columns[0].series_no = SeriesNo{series_no};
  table.columns[0].values = {1, 2};
  Commit(feed, {table}, kStartUs);
  v1::GetTrialRequest get;
  *get.mutable_trial() = Ref();
  const auto trial = reads_.GetTrial(get, Call());
  ASSERT_TRUE(trial.ok()) << trial.status();
  EXPECT_EQ(trial->trial().sample_count(), 2);
  EXPECT_EQ(trial->trial().first_sample_time_us(), kStartUs);
  EXPECT_EQ(trial->trial().last_sample_time_us(), kStartUs + 5);
  ASSERT_EQ(trial->writers_size(), 1);
  EXPECT_EQ(trial->writers(0).agent_id(), "node");
  const auto list = reads_.ListTrials({}, Call());
  ASSERT_EQ(list->trials_size(), 1);
  EXPECT_EQ(list->trials(0).sample_count(), 2);
  EXPECT_EQ(list->completeness().samples_held(), 2);
  EXPECT_EQ(list->completeness().newest_sample_time_us(), kStartUs + 5);
  EXPECT_TRUE(list->completeness().contiguous());
  EXPECT_GT(list->completeness().answered_time_us(), 0);
}

TEST_F(QueryReadsTest, AListGoesOnBehindTrialsThatWereLookedAtInVain) {
  for (int i = 0; i < 9; ++i) {
    external_id_ = absl::StrCat(i == 0 ? "first-" : "run-", i);
    OpenWriter("job");
  }
  QuerySources sources{reader_, heads_, RealClock::Get(), liveness_};
  sources.trials_looked_at_max = 3;
  const QueryReads reads(sources);
  v1::ListTrialsRequest request;
  request.set_name_contains("first-");
  std::vector<int> found;
  do {
    const auto page = reads.ListTrials(request, Call());
    ASSERT_TRUE(page.ok()) << page.status();
    found.push_back(page->trials_size());
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty() && found.size() < 10);
  // The ninth is the last of all, which only the page behind it shows.
  EXPECT_THAT(found, ::testing::ElementsAre(0, 0, 1, 0));
}

}  // namespace
}  // namespace stepwell
