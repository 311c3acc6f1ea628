// Quantiles of an attempt are those of all its samples, or absent: what a cap took of another attempt is none of them.
#include "absl/strings/str_cat.h"
#include "storage/pg_caps_store.h"
#include "tests/contract/query/query_reads_fixture.h"

namespace stepwell {
namespace {

constexpr std::int64_t kHourUs = 3'600'000'000;
constexpr std::int64_t kDaySeconds = 86'400;

class TimingRemovalsTest : public QueryReadsTest {
 protected:
  // Days since that of the fixture.
  static std::int64_t Noon(int day) { return (20'000 + day) * kDayUs + 12 * kHourUs; }

  void SetAges(std::int64_t raw_days, std::int64_t rollup_days) {
    const auto set = caps_.Set(kEpoch, {}, kAllProjects,
                               {.raw_age_seconds = raw_days * kDaySeconds,
                                .rollup_age_seconds = rollup_days * kDaySeconds},
                               {});
    ASSERT_TRUE(set.ok()) << set.status();
  }

  // The master heard of it first at `created_us`.
  Feed OpenAttempt(const std::string& key, std::int64_t created_us) {
    const Feed feed = OpenWriter(key);
    const auto dated = connection_->Exec(
        "update stepwell.attempts set created_time = $3 where trial_id = $1 and attempt = $2",
        {Value(trial_id_), feed.opened.attempt, PgTimestamp{created_us}});
    EXPECT_TRUE(dated.ok()) << dated.status();
    return feed;
  }

  // Ten steps from `first_us` on, merged.
  void Send(Feed& feed, std::int64_t first_us, std::int64_t received_us) {
    if (series_no_ == 0) series_no_ = AddSeries("timing", "step", SeriesKind::kDuration);
    TickTable table;
    table.tick_group = 1;
    for (int i = 0; i < 10; ++i) {
      table.times_us.push_back(first_us + i * 1'000'000);
      table.batches.push_back(batch_++);
    }
    table.columns.push_back({.series_no = SeriesNo{series_no_},
                             .values = std::vector<double>(10, 0.5),
                             .presence = {}});
    ASSERT_TRUE(folds_->AttachLeaves(received_us).ok());
    Commit(feed, {std::move(table)}, received_us);
    Fold();
    const auto merged = folds_->Merge(kEpoch, {.fold_no_max = heads_.MergeableFoldNo(),
                                               .ripe_tick_count = 1,
                                               .ripe_age_us = kHourUs,
                                               .now_us = received_us});
    ASSERT_TRUE(merged.ok()) << merged.status();
  }
  void Send(Feed& feed, std::int64_t first_us) { Send(feed, first_us, first_us); }

  // How many samples went.
  std::int64_t SweepAt(std::int64_t now_us) {
    std::int64_t removed = 0;
    for (bool more = true; more;) {
      const auto rolled = folds_->Merge(kEpoch, {.fold_no_max = FoldNo{0}, .now_us = now_us});
      EXPECT_TRUE(rolled.ok()) << rolled.status();
      const auto swept = caps_.Sweep(kEpoch, {.now_us = now_us}, kAllProjects);
      if (!swept.ok()) {
        ADD_FAILURE() << swept.status();
        break;
      }
      EXPECT_TRUE(swept->failed.ok()) << swept->failed;
      removed += swept->removed.sample_count;
      more = swept->more;
    }
    return removed;
  }

  v1::SummarizeTimingsResponse Summary(std::int32_t attempt = 0) {
    v1::SummarizeTimingsRequest request;
    *request.mutable_trial() = Ref(external_id_);
    request.set_attempt(attempt);
    const auto answer = reads_.SummarizeTimings(request, Call());
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? *answer : v1::SummarizeTimingsResponse();
  }

  void ExpectQuantiles(std::int64_t count, bool has_quantiles) {
    const v1::SummarizeTimingsResponse told = Summary();
    ASSERT_EQ(told.timings_size(), 1);
    EXPECT_EQ(told.timings(0).count(), count);
    EXPECT_EQ(told.timings(0).p50_seconds(), has_quantiles ? 0.5 : 0);
    EXPECT_EQ(told.timings(0).p99_seconds(), has_quantiles ? 0.5 : 0);
    EXPECT_EQ(told.timings(0).quantiles_absent(),
              has_quantiles ? v1::ABSENCE_REASON_UNSPECIFIED : v1::ABSENCE_REASON_RAW_REMOVED);
    EXPECT_GT(told.completeness().gaps_size(), 0) << "of the trial";
  }

  const std::unique_ptr<PgConnection> connection_ = testing::Connect(url_);
  PgCapsStore caps_{{.url = url_}};
  std::int32_t series_no_ = 0;
  std::int32_t batch_ = 0;
};

TEST_F(TimingRemovalsTest, WhatAnAgeTookOfAnotherAttemptIsNoneOfItsSamples) {
  SetAges(5, 100);
  Feed first = OpenAttempt("first", Noon(1));
  Send(first, Noon(1));
  Feed second = OpenAttempt("second", Noon(10));
  Send(second, Noon(10));
  ASSERT_EQ(SweepAt(Noon(12)), 10);
  ExpectQuantiles(10, true);
  EXPECT_EQ(Summary(1).timings_size(), 0);
}

TEST_F(TimingRemovalsTest, NorWhereItsRollupsWentToo) {
  SetAges(5, 5);
  Feed first = OpenAttempt("first", Noon(1));
  Send(first, Noon(1));
  Feed second = OpenAttempt("second", Noon(10));
  Send(second, Noon(10) - 2'000'000);  // its processes began before the master heard of them
  Send(second, Noon(10) + kHourUs);
  ASSERT_EQ(SweepAt(Noon(12)), 10);
  ExpectQuantiles(20, true);
}

TEST_F(TimingRemovalsTest, WhatAnAgeTookOfTheAttemptItselfIs) {
  for (const std::int64_t rollup_days : {std::int64_t{100}, std::int64_t{5}}) {
    SCOPED_TRACE(rollup_days);
    Turn(absl::StrCat("run", rollup_days));
    series_no_ = 0;
    SetAges(5, rollup_days);
    Feed first = OpenAttempt("first", Noon(1));
    Send(first, Noon(1));
    Feed second = OpenAttempt("second", Noon(10));
    Send(second, Noon(10));
    Send(second, Noon(14));
    ASSERT_EQ(SweepAt(Noon(17)), 20);
    ExpectQuantiles(10, false);
  }
}

// A master that was away: what was recorded meanwhile came all at once, over midnight.
TEST_F(TimingRemovalsTest, WhatItRecordedBeforeTheMasterHeardOfItIsItsOwn) {
  SetAges(5, 5);
  Feed first = OpenAttempt("first", Noon(1));
  Send(first, Noon(1));
  Feed second = OpenAttempt("second", Noon(10));
  Send(second, Noon(6), Noon(10));
  Send(second, Noon(7), Noon(11));
  Send(second, Noon(11));
  ASSERT_EQ(SweepAt(Noon(16)), 20);
  ExpectQuantiles(20, false);
}

}  // namespace
}  // namespace stepwell
