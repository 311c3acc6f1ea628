// How often a read waits for the database, counted where all statements go through (PgConnection), and
// that what it remembers instead of asking is never wrong.
#include <atomic>
#include <memory>
#include <span>

#include "absl/strings/match.h"
#include "tests/contract/query/query_reads_fixture.h"

namespace stepwell {
namespace {

class RoundTripsTest : public QueryReadsTest {
 protected:
  RoundTripsTest() {
    feed_ = OpenWriter("job");
    for (int i = 0; i < 20; ++i) series_.push_back(AddSeries("gpu", absl::StrCat("value_", i)));
    Send();
    Fold();
    Merge(1);
    Send();
    Fold();  // recent rows, too
    Send();  // and heads
  }

  void Send(std::int64_t received_us = kStartUs) {
    TickTable table;
    table.tick_group = 1;
    for (int i = 0; i < 100; ++i) {
      table.times_us.push_back(time_us_ += 1'000'000);
      table.batches.push_back(i);
    }
    for (const std::int32_t series_no : series_) {
      table.columns.push_back({.series_no = SeriesNo{series_no},
                               .values = std::vector<double>(100, 0.5),
                               .presence = {}});
    }
    Commit(feed_, {std::move(table)}, received_us);
  }

  std::int64_t TripsOf(const std::function<absl::Status()>& read) {
    const std::int64_t before = *count_;
    const absl::Status status = read();
    EXPECT_TRUE(status.ok()) << status;
    return *count_ - before;
  }
  absl::Status Latest() const {
    v1::LatestValuesRequest request;
    *request.mutable_trial() = Ref();
    return counted_.LatestValues(request, Call()).status();
  }

  const std::shared_ptr<std::atomic<std::int64_t>> count_ =
      std::make_shared<std::atomic<std::int64_t>>(0);
  PgReader counting_{{.url = url_, .round_trip_count = count_}};
  QueryReads counted_{QuerySources{counting_, heads_, RealClock::Get(), liveness_}};
  Feed feed_;
  std::vector<std::int32_t> series_;
  std::int64_t time_us_ = kStartUs;
};

TEST_F(RoundTripsTest, AChartWaitsOnceAndAReadOfSamplesOnceMore) {
  EXPECT_LE(TripsOf([&] { return Latest(); }), 5) << "the first: name, series, newest rows, ticks";
  EXPECT_EQ(TripsOf([&] { return Latest(); }), 1);

  v1::GetTrialRequest trial;
  *trial.mutable_trial() = Ref();
  EXPECT_EQ(TripsOf([&] { return counted_.GetTrial(trial, Call()).status(); }), 1);

  v1::QueryBucketsRequest buckets;
  *buckets.mutable_trial() = Ref();
  buckets.add_selectors()->set_name("value_7");
  buckets.set_max_buckets(7);
  buckets.set_resolution(v1::RESOLUTION_RAW);
  const auto chart = [&] { return counted_.QueryBuckets(buckets, Call()).status(); };
  EXPECT_LE(TripsOf(chart), 2) << "the first: rows with the bookkeeping, ticks";
  EXPECT_EQ(TripsOf(chart), 1);
  buckets.set_resolution(v1::RESOLUTION_10_SECONDS);
  EXPECT_EQ(TripsOf(chart), 2) << "the first: rollups and rows with the bookkeeping, grids";
  EXPECT_EQ(TripsOf(chart), 1);
  buckets.mutable_selectors(0)->set_name("value_8");
  EXPECT_EQ(TripsOf(chart), 1) << "series of one writer share ticks and grids";

  v1::ReadSamplesRequest samples;
  *samples.mutable_trial() = Ref();
  EXPECT_EQ(TripsOf([&] {
              return counted_.ReadSamples(samples, Call(), [](const auto&) { return true; });
            }),
            2);
}

class RememberedLedgerTest : public RoundTripsTest {
 protected:
  RememberedLedgerTest() {
    *request_.mutable_trial() = Ref();
    request_.add_selectors()->set_name("value_7");
    request_.set_max_buckets(7);
    EXPECT_GT(CountOf(v1::RESOLUTION_RAW), 0u);
  }

  // Samples in the buckets of an answer about all times; 0 where there is none.
  std::uint64_t CountOf(v1::Resolution resolution) {
    request_.set_resolution(resolution);
    const auto answer = counted_.QueryBuckets(request_, Call());
    EXPECT_TRUE(answer.ok()) << answer.status();
    if (!answer.ok() || answer->series_size() == 0) return 0;
    std::uint64_t count = 0;
    for (const std::uint64_t each : answer->series(0).counts()) count += each;
    return count;
  }

  v1::QueryBucketsRequest request_;
};

TEST_F(RememberedLedgerTest, RowsInALeafThatItDoesNotKnowAreFound) {
  EXPECT_EQ(CountOf(v1::RESOLUTION_RAW), 300u);
  Send(kStartUs + kDayUs);
  Fold();
  Merge(1);
  EXPECT_EQ(CountOf(v1::RESOLUTION_RAW), 400u);
  EXPECT_EQ(CountOf(v1::RESOLUTION_10_SECONDS), 400u);
  // Rows that leave recent for a leaf that is known already are missed by neither.
  Send(kStartUs + kDayUs);
  Fold();
  EXPECT_EQ(CountOf(v1::RESOLUTION_10_SECONDS), 500u);
  Merge(1);
  EXPECT_EQ(CountOf(v1::RESOLUTION_10_SECONDS), 500u);
}

TEST_F(RememberedLedgerTest, ALeafThatIsGoneIsNotMissed) {
  const auto connection = testing::Connect(url_);
  Fold();
  Merge(1);
  EXPECT_EQ(CountOf(v1::RESOLUTION_RAW), 300u);
  ASSERT_TRUE(
      connection
          ->ExecScript("drop table stepwell.metrics_k0_20241004, "
                       "stepwell.ticks_k0_20241004, stepwell.rollups_k0_20241004, "
                       "stepwell.rollup_ticks_k0_20241004; delete from stepwell.usage_lines")
          .ok());
  EXPECT_EQ(CountOf(v1::RESOLUTION_RAW), 0u);
  Send(kStartUs + kDayUs);
  Fold();
  Merge(1);
  EXPECT_EQ(CountOf(v1::RESOLUTION_RAW), 100u);
  EXPECT_EQ(TripsOf([&] { return counted_.QueryBuckets(request_, Call()).status(); }), 1)
      << "leaves are still named";
}

TEST_F(RoundTripsTest, RowsThatReachIntoARangeAreFoundByTheirTicksWhereManySeriesAreAsked) {
  int by_ticks = 0;
  PgReader watched({.url = url_, .watch = [&](std::span<const ReadStatement> statements) {
                      for (const ReadStatement& each : statements) {
                        const bool asks =
                            each.query == ReadQuery::kRows || each.query == ReadQuery::kRollups;
                        by_ticks +=
                            asks && absl::StrContains(each.statement.sql.c_str(), "select min(");
                      }
                    }});
  const QueryReads reads{QuerySources{watched, heads_, RealClock::Get(), liveness_}};
  v1::QueryBucketsRequest request;
  *request.mutable_trial() = Ref();
  request.set_max_buckets(3);
  // The only merged rows begin at 1 s and end at 100 s.
  request.mutable_time_range()->set_start_time_us(kStartUs + 50'000'000);
  request.mutable_time_range()->set_end_time_us(kStartUs + 80'000'000);
  for (const v1::Resolution resolution : {v1::RESOLUTION_RAW, v1::RESOLUTION_10_SECONDS}) {
    request.set_resolution(resolution);
    by_ticks = 0;
    for (int i = 0; i < 2; ++i) {
      const auto answer = reads.QueryBuckets(request, Call());
      ASSERT_TRUE(answer.ok()) << answer.status();
      ASSERT_EQ(answer->series_size(), 20);
      for (const auto& series : answer->series()) {
        EXPECT_THAT(series.counts(), ::testing::ElementsAre(10, 10, 10));
      }
    }
    EXPECT_GE(by_ticks, 1);
  }
  // A range that only heads reach into.
  request.mutable_time_range()->set_start_time_us(kStartUs + 250'000'000);
  request.mutable_time_range()->set_end_time_us(kStartUs + 280'000'000);
  const auto answer = reads.QueryBuckets(request, Call());
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(answer->series(0).counts(), ::testing::ElementsAre(10, 10, 10));
}

TEST_F(RoundTripsTest, RollupsThatWereReadAreAskedForByTheirKeysAndNewOnesAreRead) {
  int whole_rows = 0;
  const auto watch = [&](std::span<const ReadStatement> statements) {
    for (const ReadStatement& each : statements) {
      whole_rows += each.query == ReadQuery::kRollups &&
                    absl::StrContains(each.statement.sql.c_str(), "min_form");
    }
  };
  PgReader watched({.url = url_, .watch = watch, .round_trip_count = count_});
  const QueryReads reads{QuerySources{watched, heads_, RealClock::Get(), liveness_}};
  v1::QueryBucketsRequest request;
  *request.mutable_trial() = Ref();
  request.add_selectors()->set_name("value_7");
  request.add_selectors()->set_name("value_8");
  request.set_max_buckets(7);
  request.set_resolution(v1::RESOLUTION_10_SECONDS);
  v1::QueryBucketsResponse answer;
  const auto chart = [&] {
    auto read = reads.QueryBuckets(request, Call());
    if (read.ok()) answer = *std::move(read);
    return read.status();
  };
  const auto text = [&] {
    std::string all;
    for (const auto& series : answer.series()) all += series.ShortDebugString();
    return all;
  };
  TripsOf(chart);
  EXPECT_GE(whole_rows, 1);
  const std::string first = text();
  whole_rows = 0;
  EXPECT_EQ(TripsOf(chart), 1);
  EXPECT_EQ(whole_rows, 0);
  EXPECT_EQ(text(), first);

  // One of two series known: keys of both, then the rows of the other.
  request.mutable_selectors(1)->set_name("value_9");
  EXPECT_EQ(TripsOf(chart), 2);
  EXPECT_EQ(whole_rows, 1);
  EXPECT_EQ(TripsOf(chart), 1);

  // Rows that came since, with ticks of their own.
  Fold();
  Merge(1);
  whole_rows = 0;
  TripsOf(chart);
  EXPECT_EQ(whole_rows, 1) << "what is new, and that alone";
  const std::string merged = text();
  EXPECT_EQ(TripsOf(chart), 1);
  EXPECT_EQ(text(), merged);
  const auto fresh = counted_.QueryBuckets(request, Call());
  ASSERT_TRUE(fresh.ok()) << fresh.status();
  answer = *fresh;
  EXPECT_EQ(text(), merged) << "as a reader says that remembers nothing";
  EXPECT_THAT(answer.series(0).counts(), ::testing::Contains(::testing::Gt(0u)));
}

TEST_F(RoundTripsTest, WhatIsRememberedIsNeverWrong) {
  ASSERT_TRUE(Latest().ok());
  // A series that came later.
  series_.push_back(AddSeries("gpu", "newer"));
  Send();
  v1::LatestValuesRequest request;
  *request.mutable_trial() = Ref();
  const auto answer = counted_.LatestValues(request, Call());
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->values_size(), 21);
  EXPECT_EQ(answer->values(20).series().key().name(), "newer");

  // A trial that is deleted, by its name and by its number.
  const auto connection = testing::Connect(url_);
  ASSERT_TRUE(connection->ExecScript("update stepwell.trials set deleted_time = now()").ok());
  EXPECT_THAT(std::string(Latest().message()), ::testing::HasSubstr("there is no trial 'run'"));
  request.mutable_trial()->clear_external_id();
  request.mutable_trial()->set_trial_id(Value(trial_id_));
  EXPECT_TRUE(absl::IsNotFound(counted_.LatestValues(request, Call()).status()));

  // A database that was set back: nobody stays connected meanwhile.
  ASSERT_TRUE(connection
                  ->ExecScript("update stepwell.trials set deleted_time = null, series_count = 20; "
                               "delete from stepwell.series where series_no > 20; "
                               "update stepwell.series set name = 'other ' || name; "
                               "select pg_terminate_backend(pid, 10000) from pg_stat_activity "
                               "where application_name = 'stepwell read'")
                  .ok());
  v1::QueryBucketsRequest buckets;
  *buckets.mutable_trial() = Ref();
  buckets.add_selectors()->set_name("other value_7");
  const auto after = counted_.QueryBuckets(buckets, Call());
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(after->series_size(), 1);
}

}  // namespace
}  // namespace stepwell
