// Completeness tells what clients declared as lost and what vanished from the database, each exactly,
// while ingest goes on.
#include <atomic>
#include <random>

#include "absl/cleanup/cleanup.h"
#include "base/worker.h"
#include "storage/pg_caps_store.h"
#include "tests/contract/query/query_reads_fixture.h"
#include "tests/support/codec_vectors.h"
#include "tests/support/sql_of.h"

namespace stepwell {
namespace {

class VanishedRowsTest : public QueryReadsTest {
 protected:
  // Samples of the series at `count` ticks.
  void Send(Feed& feed, int count, std::vector<Gap> gaps = {}) {
    TickTable table;
    table.tick_group = 1;
    for (int i = 0; i < count; ++i) {
      table.times_us.push_back(time_us_ += 1'000'000);
      table.batches.push_back(-1);
    }
    for (const std::int32_t series_no : series_) {
      table.columns.push_back({.series_no = SeriesNo{series_no},
                               .values = std::vector<double>(static_cast<std::size_t>(count), 0.5),
                               .presence = {}});
    }
    Commit(feed, {std::move(table)}, kStartUs, std::move(gaps));
  }

  static Gap Loss(std::int64_t sample_count) {
    Gap gap;
    gap.cause = GapCause::kRingFull;
    gap.metric_group = "timing";
    gap.sample_count = sample_count;
    gap.first_time_us = kStartUs;
    gap.last_time_us = kStartUs + 1;
    return gap;
  }

  // Deletes one row of `table`, whichever, behind the master's back; its samples.
  std::int64_t DropRow(const std::string& table) {
    const auto gone = connection_->Exec(
        SqlOf(absl::StrCat("with one as (select ctid, tableoid from stepwell.", table,
                           " order by random() limit 1) delete from stepwell.", table,
                           " m using one where m.ctid = one.ctid and m.tableoid = one.tableoid "
                           "returning m.sample_count")));
    EXPECT_TRUE(gone.ok()) << gone.status();
    return gone->row_count() == 0 ? 0 : gone->Int32(0, 0);
  }

  void Sweep() {
    for (bool more = true; more;) {
      const auto swept =
          caps_.Sweep(kEpoch, {.target = CapsTarget{.trial = TrialSelector{.external_id = "run"}}},
                      kAllProjects);
      ASSERT_TRUE(swept.ok()) << swept.status();
      ASSERT_TRUE(swept->failed.ok()) << swept->failed;
      more = swept->more;
    }
  }

  v1::Completeness Ask() {
    v1::LatestValuesRequest request;
    *request.mutable_trial() = Ref();
    const auto answer = reads_.LatestValues(request, Call());
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? answer->completeness() : v1::Completeness();
  }

  static std::int64_t Missing(const v1::Completeness& completeness, v1::GapCause cause) {
    std::int64_t missing = 0;
    for (const v1::Gap& gap : completeness.gaps()) {
      if (gap.cause() == cause) missing += gap.sample_count();
    }
    return missing;
  }

  const std::unique_ptr<PgConnection> connection_ = testing::Connect(url_);
  PgCapsStore caps_{{.url = url_}};
  std::vector<std::int32_t> series_;
  std::int64_t time_us_ = kStartUs;
};

TEST_F(VanishedRowsTest, ADroppedRowAndADeclaredLossAreToldExactlyBesideIngest) {
  Feed feed = OpenWriter("job");
  series_ = {AddSeries("timing", "step"), AddSeries("timing", "load"), AddSeries("gpu", "util")};
  std::mt19937_64 random(testing::TestSeed());
  std::int64_t declared = 0;
  std::atomic<std::int64_t> begun = 0;
  std::atomic<std::int64_t> acked = 0;
  const auto round = [&](int chunks) {
    for (int i = 0; i < chunks; ++i) {
      const int count = 1 + static_cast<int>(random() % 20);
      begun += count * std::ssize(series_);
      const bool loses = random() % 4 == 0;
      Send(feed, count, loses ? std::vector<Gap>{Loss(7)} : std::vector<Gap>{});
      if (loses) declared += 7;
      acked += count * std::ssize(series_);
    }
    Fold();
    if (random() % 2 == 0) Merge(1);
  };
  round(5);
  Merge(1);
  EXPECT_TRUE(Ask().gaps_size() == 0 || Missing(Ask(), v1::GAP_CAUSE_RESTORED) == 0);

  std::atomic<bool> stop = false;
  Worker ingest("ingest", [&] {
    while (!stop) round(3);
  });
  const absl::Cleanup end = [&] { stop = true; };
  std::int64_t dropped = 0;
  for (int i = 0; i < 12; ++i) {
    const std::int64_t acked_before = acked;
    dropped += DropRow("metrics");
    Sweep();
    const v1::Completeness told = Ask();
    ASSERT_EQ(Missing(told, v1::GAP_CAUSE_RESTORED), dropped);
    ASSERT_GE(told.samples_held() + dropped, acked_before);
    ASSERT_LE(told.samples_held() + dropped, begun);
    ASSERT_FALSE(told.contiguous());
  }
  stop = true;
  ingest.Join();
  ASSERT_GT(dropped, 0);

  Sweep();
  const v1::Completeness told = Ask();
  EXPECT_EQ(told.samples_held(), acked - dropped);
  EXPECT_EQ(told.samples_missing(), declared + dropped);
  EXPECT_EQ(Missing(told, v1::GAP_CAUSE_RING_FULL), declared);
  EXPECT_EQ(Missing(told, v1::GAP_CAUSE_RESTORED), dropped);
  // What is held is there: nothing but the dropped rows is missing from a read of everything.
  v1::ReadSamplesRequest all;
  *all.mutable_trial() = Ref();
  std::int64_t read = 0;
  for (const auto& message : ReadMessages(all)) read += message.values_size();
  EXPECT_EQ(read, told.samples_held());
}

TEST_F(VanishedRowsTest, WhatVanishedBetweenFoldAndMergeIsToldAndMergesGoOn) {
  Feed feed = OpenWriter("job");
  series_ = {AddSeries("timing", "step"), AddSeries("gpu", "util")};
  Send(feed, 10);
  Send(feed, 10);
  Fold();
  ASSERT_EQ(DropRow("recent"), 20);
  Merge(1);
  Send(feed, 3);
  Fold();
  Merge(1);
  Sweep();
  EXPECT_EQ(Ask().samples_held(), 26);
  EXPECT_EQ(Missing(Ask(), v1::GAP_CAUSE_RESTORED), 20);
  Sweep();
  EXPECT_EQ(Ask().samples_missing(), 20) << "once";
}

TEST_F(VanishedRowsTest, ASweepOfAllTrialsFindsThemToo) {
  Feed feed = OpenWriter("job");
  series_ = {AddSeries("gpu", "util")};
  Send(feed, 10);
  Fold();
  Merge(1);
  ASSERT_EQ(DropRow("metrics"), 10);
  EXPECT_EQ(Ask().samples_missing(), 0) << "bookkeeping does not look at rows";
  // Of the fixture's day: no age has passed.
  ASSERT_TRUE(caps_.Sweep(kEpoch, {.now_us = kStartUs}, kAllProjects).ok());
  EXPECT_EQ(Ask().samples_held(), 0);
  EXPECT_EQ(Ask().samples_missing(), 10);
}

TEST_F(VanishedRowsTest, QuantilesOfWhatACapLeftAreNotToldAsThoseOfAll) {
  Feed feed = OpenWriter("job");
  series_ = {AddSeries("timing", "load", SeriesKind::kDuration), AddSeries("gpu", "util")};
  Send(feed, 10);
  const auto timing = [&]() -> v1::SummarizeTimingsResponse::Timing {
    v1::SummarizeTimingsRequest request;
    *request.mutable_trial() = Ref();
    const auto answer = reads_.SummarizeTimings(request, Call());
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() && answer->timings_size() == 1 ? answer->timings(0)
                                                      : v1::SummarizeTimingsResponse::Timing();
  };
  const auto remove = [&](const std::string& metric_group) {
    Gap gap = Loss(5);
    gap.cause = GapCause::kCap;
    gap.metric_group = metric_group;
    Send(feed, 1, {gap});
    Fold();
  };
  remove("gpu");
  EXPECT_EQ(timing().count(), 11);
  EXPECT_EQ(timing().p50_seconds(), 0.5);
  EXPECT_EQ(timing().quantiles_absent(), v1::ABSENCE_REASON_UNSPECIFIED);
  ASSERT_TRUE(caps_.NoteWindowOver(kEpoch, trial_id_, kStartUs).ok());
  EXPECT_EQ(timing().p50_seconds(), 0.5) << "a window that is over removed nothing";
  EXPECT_EQ(timing().quantiles_absent(), v1::ABSENCE_REASON_UNSPECIFIED);
  remove("timing");
  EXPECT_EQ(timing().count(), 12);
  EXPECT_EQ(timing().max_seconds(), 0.5);
  EXPECT_EQ(timing().p50_seconds(), 0);
  EXPECT_EQ(timing().p99_seconds(), 0);
  EXPECT_FALSE(timing().quantiles_exact());
  EXPECT_EQ(timing().quantiles_absent(), v1::ABSENCE_REASON_RAW_REMOVED);
}

// More gaps than an answer lists, of whatever they are, are no cap's.
TEST_F(VanishedRowsTest, QuantilesStayWhereMoreIsMissingThanIsListedAndNoCapTookIt) {
  Feed feed = OpenWriter("job");
  series_ = {AddSeries("timing", "load", SeriesKind::kDuration)};
  Send(feed, 10);
  Fold();
  const auto add = [&](int count, int cause, const char* group, const char* reason) {
    const auto added = connection_->Exec(
        "insert into stepwell.gaps (trial_id, writer_no, cause, metric_group, sample_count, "
        "first_time_us, "
        "last_time_us, first_sequence, last_sequence, reason) "
        "select $1, 1, $2, $3, 1, $4::bigint + n, $4::bigint + n, 0, 0, $5 from generate_series(1, "
        "$6) n",
        {Value(trial_id_), cause, std::string(group), kStartUs, std::string(reason), count});
    ASSERT_TRUE(added.ok()) << added.status();
  };
  const auto summary = [&] {
    v1::SummarizeTimingsRequest request;
    *request.mutable_trial() = Ref();
    const auto answer = reads_.SummarizeTimings(request, Call());
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? *answer : v1::SummarizeTimingsResponse();
  };
  constexpr int kSensorFailed = static_cast<int>(GapCause::kSensorFailed);
  constexpr int kCap = static_cast<int>(GapCause::kCap);
  struct Row {
    const char* name;
    int count, cause;
    const char *group, *reason;
    bool has_quantiles;
  };
  for (const Row& row :
       {Row{"more than are listed", GapFilter().limit + 1, kSensorFailed, "gpu", "", true},
        Row{"a cap of another group", 1, kCap, "gpu", "raw_age_seconds", true},
        Row{"a window that was over", 1, kCap, "", "profiling_window_seconds", true},
        Row{"a cap of all groups", 1, kCap, "", "raw_age_seconds", false}}) {
    SCOPED_TRACE(row.name);
    add(row.count, row.cause, row.group, row.reason);
    const v1::SummarizeTimingsResponse told = summary();
    ASSERT_EQ(told.timings_size(), 1);
    EXPECT_TRUE(told.completeness().gaps_truncated());
    EXPECT_EQ(told.timings(0).count(), 10);
    EXPECT_EQ(told.timings(0).p50_seconds(), row.has_quantiles ? 0.5 : 0);
    EXPECT_EQ(told.timings(0).quantiles_absent(),
              row.has_quantiles ? v1::ABSENCE_REASON_UNSPECIFIED : v1::ABSENCE_REASON_RAW_REMOVED);
  }
}

}  // namespace
}  // namespace stepwell
