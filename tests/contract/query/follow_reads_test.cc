// FollowSamples over real commits and folds: what is pushed, from where on, and how it ends. The stream
// is driven by its own messages: after each of them the test does its next step.
#include <cmath>
#include <limits>

#include "server/follow_place.h"
#include "tests/contract/query/query_reads_fixture.h"

namespace stepwell {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::int64_t NowUs() { return absl::ToUnixMicros(absl::Now()); }

class FollowReadsTest : public QueryReadsTest {
 protected:
  struct Followed {
    absl::Status status;
    std::vector<v1::FollowSamplesResponse> messages;
    std::vector<Point> points;
    std::vector<std::int32_t> announced;
  };

  v1::FollowSamplesRequest Request(const std::string& cursor = {}) const {
    v1::FollowSamplesRequest request;
    *request.mutable_trial() = Ref();
    request.set_cursor(cursor);
    return request;
  }

  // Follows; after the first message and after each with samples the next of `steps` is done. Ends after
  // the message that follows the last of them, or with the stream.
  Followed Follow(const v1::FollowSamplesRequest& request,
                  std::vector<std::function<void()>> steps = {}) {
    Followed followed;
    std::size_t step = 0;
    ReadCall call = Call();
    const absl::Time patience = absl::Now() + absl::Seconds(20);
    call.cancelled = [patience] { return absl::Now() > patience; };
    followed.status = reads_.FollowSamples(request, call, [&](const auto& message) {
      EXPECT_FALSE(message.cursor().empty());
      Note(message, followed);
      followed.messages.push_back(message);
      if (followed.messages.size() > 1 && message.samples().empty()) return true;
      if (step == steps.size()) return steps.empty();
      steps[step++]();
      return true;
    });
    return followed;
  }

  // Its first message alone.
  Followed Begin(const v1::FollowSamplesRequest& request) {
    Followed followed;
    followed.status = reads_.FollowSamples(request, Call(), [&](const auto& message) {
      Note(message, followed);
      followed.messages.push_back(message);
      return false;
    });
    return followed;
  }

  static void Note(const v1::FollowSamplesResponse& message, Followed& followed) {
    for (const auto& series : message.series()) followed.announced.push_back(series.series_no());
    std::int32_t last_no = 0;
    for (const auto& samples : message.samples()) {
      EXPECT_GT(samples.series_no(), last_no) << "by series number, each once";
      last_no = samples.series_no();
      EXPECT_THAT(followed.announced, ::testing::Contains(last_no)) << "announced before";
      for (int i = 0; i < samples.values_size(); ++i) {
        followed.points.push_back({last_no, samples.timestamps_us(i), samples.batches(i),
                                   samples.attempts(samples.attempts_size() == 1 ? 0 : i), 0,
                                   samples.values(i)});
      }
    }
  }

  static std::vector<double> Values(const Followed& followed) {
    std::vector<double> values;
    for (const Point& point : followed.points) values.push_back(point.value);
    return values;
  }

  // One sample of each series.
  static std::vector<TickTable> Tick(const std::vector<std::int32_t>& series_nos, double value,
                                     std::int64_t time_us = kStartUs) {
    TickTable table{1, {time_us}, {3}, {}};
    for (const std::int32_t no : series_nos) {
      table.columns.push_back({static_cast<SeriesNo>(no), {value}, {}});
    }
    return {table};
  }

  void SetState(TrialState state) {
    ASSERT_TRUE(ingest_->SetTrialState(trial_id_, state, kEpoch).ok());
  }
};

TEST_F(FollowReadsTest, SamplesComeAsTheyAreAckedAndNewSeriesAreAnnouncedOnce) {
  Feed feed = OpenWriter("a");
  const std::int32_t one = AddSeries("g", "one");
  Commit(feed, Tick({one}, 0), NowUs());
  std::int32_t two = 0;
  const Followed followed = Follow(Request(), {[&] { Commit(feed, Tick({one}, 1), NowUs()); },
                                               [&] {
                                                 two = AddSeries("g", "two");
                                                 Commit(feed, Tick({one, two}, 2), NowUs());
                                               },
                                               [&] {
                                                 Fold();
                                                 Commit(feed, Tick({two}, 3), NowUs());
                                               }});
  EXPECT_TRUE(absl::IsCancelled(followed.status)) << followed.status;
  EXPECT_THAT(followed.announced, ElementsAre(one, two));
  EXPECT_THAT(Values(followed), ElementsAre(1, 2, 2, 3)) << "not what was acked before the call";
  const auto& first = followed.messages.front();
  EXPECT_EQ(first.state(), v1::TRIAL_STATE_RUNNING);
  EXPECT_EQ(first.completeness().samples_held(), 1);
  EXPECT_EQ(first.missing_before_time_us(), 0);
  EXPECT_FALSE(followed.messages.back().has_completeness());
  EXPECT_EQ(followed.points[0].batch, 3);
  EXPECT_EQ(followed.points[0].attempt, 1);
}

TEST_F(FollowReadsTest, SelectorsChooseSeriesThatComeLaterToo) {
  Feed feed = OpenWriter("a");
  const std::int32_t one = AddSeries("g", "one");
  auto request = Request();
  request.add_selectors()->set_name("two");
  request.add_selectors()->set_metric_group("h");
  std::int32_t two = 0;
  std::int32_t three = 0;
  const Followed followed = Follow(request, {[&] {
                                     Commit(feed, Tick({one}, 1), NowUs());
                                     two = AddSeries("g", "two");
                                     three = AddSeries("h", "three");
                                     Commit(feed, Tick({one, two, three}, 2), NowUs());
                                   }});
  EXPECT_THAT(followed.announced, ElementsAre(two, three));
  EXPECT_THAT(Values(followed), ElementsAre(2, 2));
}

TEST_F(FollowReadsTest, ValuesMissesAttemptsAndLateSamplesAreAsTheyCame) {
  Feed first = OpenWriter("a");
  Feed second = OpenWriter("b");
  const std::int32_t no = AddSeries("g", "one");
  const double infinity = std::numeric_limits<double>::infinity();
  const Followed followed = Follow(
      Request(), {[&] {
        TickTable table{1, {kStartUs + 30, kStartUs + 10, kStartUs + 20}, {7, -1, 2}, {}};
        table.columns.push_back({static_cast<SeriesNo>(no), {std::nan(""), -infinity}, {1, 0, 1}});
        TickColumn misses{static_cast<SeriesNo>(AddSeries("g", "misses")), {}, {0, 0, 0}};
        table.columns.push_back(misses);
        Commit(first, {table}, NowUs());
        Commit(second, Tick({no}, -0.0, kStartUs + 5), NowUs());
      }});
  ASSERT_EQ(followed.messages.back().samples_size(), 1) << "what was missed is no sample";
  const auto& samples = followed.messages.back().samples(0);
  EXPECT_THAT(samples.timestamps_us(), ElementsAre(kStartUs + 30, kStartUs + 20, kStartUs + 5));
  EXPECT_THAT(samples.batches(), ElementsAre(7, 2, 3));
  EXPECT_THAT(samples.attempts(), ElementsAre(1, 1, 2));
  EXPECT_TRUE(std::isnan(samples.values(0)));
  EXPECT_EQ(samples.values(1), -infinity);
  EXPECT_TRUE(std::signbit(samples.values(2)));
}

TEST_F(FollowReadsTest, ACursorGoesOnWhereverThePlaceIsFolded) {
  Feed feed = OpenWriter("a");
  Feed other = OpenWriter("b");
  const std::int32_t no = AddSeries("g", "one");
  Commit(feed, Tick({no}, 1), NowUs());
  const Followed before = Follow(Request(), {[&] { Commit(feed, Tick({no}, 2), NowUs()); }});
  const std::string cursor = before.messages.back().cursor();
  Commit(feed, Tick({no}, 3), NowUs());
  Fold();
  Commit(other, Tick({no}, 4), NowUs());
  Feed late = OpenWriter("c");
  Commit(late, Tick({no}, 5), NowUs());
  const Followed after = Follow(Request(cursor), {[&] { Commit(feed, Tick({no}, 6), NowUs()); }});
  EXPECT_THAT(Values(after), ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(after.announced, ElementsAre(no)) << "announced on each stream";
  // A cursor may be given more than once, and with other selectors.
  auto request = Request(cursor);
  request.add_selectors()->set_name("none");
  EXPECT_TRUE(Begin(request).points.empty());
  EXPECT_THAT(Values(Follow(Request(after.messages.back().cursor()),
                            {[&] { Commit(other, Tick({no}, 7), NowUs()); }})),
              ElementsAre(7));
}

TEST_F(FollowReadsTest, ALookbackTakesWhatMemoryHoldsAndSaysWhatIsMissing) {
  Feed feed = OpenWriter("a");
  const std::int32_t no = AddSeries("g", "one");
  Commit(feed, Tick({no}, 1, kStartUs + 1), NowUs() - 70'000'000);
  Commit(feed, Tick({no}, 2, kStartUs + 2), NowUs() - 30'000'000);
  auto request = Request();
  request.set_lookback_us(60'000'000);
  const Followed followed = Begin(request);
  EXPECT_THAT(Values(followed), ElementsAre(2));
  // These heads hold everything since they began, which is less than a minute.
  EXPECT_EQ(followed.messages[0].missing_before_time_us(), 0);
  Fold();
  Heads fresh;
  fresh.NoteWriter(trial_id_, feed.opened.writer_no, 2);
  fresh.RecoveryStarted({}, FoldNo{1});
  const QueryReads reads(QuerySources{reader_, fresh, RealClock::Get(), liveness_});
  v1::FollowSamplesResponse first;
  EXPECT_TRUE(absl::IsCancelled(reads.FollowSamples(request, Call(), [&](const auto& message) {
    first = message;
    return false;
  })));
  EXPECT_TRUE(first.samples().empty());
  EXPECT_GT(first.missing_before_time_us(), 0);
  EXPECT_LE(first.missing_before_time_us(), kStartUs + 2);
}

TEST_F(FollowReadsTest, APlaceThatLeftMemoryIsOutOfRangeWithTheTimeToReadFrom) {
  Feed feed = OpenWriter("a");
  const std::int32_t no = AddSeries("g", "one");
  const std::int64_t old_us = NowUs() - 70'000'000;
  const Followed before =
      Follow(Request(), {[&] { Commit(feed, Tick({no}, 1), old_us - 5'000'000); }});
  const std::string cursor = before.messages.back().cursor();
  Commit(feed, Tick({no}, 2, kStartUs + 500), old_us);
  Commit(feed, Tick({no}, 3, kStartUs + 300), old_us);
  Fold();
  const Followed after = Follow(Request(cursor));
  EXPECT_TRUE(absl::IsOutOfRange(after.status)) << after.status;
  EXPECT_THAT(std::string(after.status.message()), HasSubstr(std::to_string(kStartUs + 300)));
  EXPECT_EQ(after.status.GetPayload("stepwell/metadata/read_from_time_us"),
            absl::Cord(std::to_string(kStartUs + 300)));
  EXPECT_TRUE(after.messages.empty());
  // A master that knows nothing of that log answers from the ledger, coarser.
  Heads fresh;
  fresh.NoteWriter(trial_id_, feed.opened.writer_no, 3);
  fresh.RecoveryStarted({}, FoldNo{1});
  const QueryReads reads(QuerySources{reader_, fresh, RealClock::Get(), liveness_});
  const absl::Status status =
      reads.FollowSamples(Request(cursor), Call(), [](const auto&) { return false; });
  EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("start_time_us = "));
}

TEST_F(FollowReadsTest, ARunningStreamThatIsTooSlowIsOutOfRangeToo) {
  Feed feed = OpenWriter("a");
  const std::int32_t no = AddSeries("g", "one");
  const Followed followed =
      Follow(Request(), {[&] {
               Commit(feed, Tick({no}, 1, kStartUs + 900), NowUs() - 70'000'000);
               Commit(feed, Tick({no}, 2, kStartUs + 800), NowUs() - 70'000'000);
               Fold();
               Commit(feed, Tick({no}, 3, kStartUs + 100), NowUs());
             }});
  EXPECT_TRUE(absl::IsOutOfRange(followed.status)) << followed.status;
  EXPECT_EQ(followed.status.GetPayload("stepwell/metadata/read_from_time_us"),
            absl::Cord(std::to_string(kStartUs + 100)))
      << "with what is still here, since the stream does not bring that any more";
}

TEST_F(FollowReadsTest, SequencesWithoutSamplesMoveThePlaceAndAreNoLoss) {
  Feed feed = OpenWriter("a");
  const std::int32_t no = AddSeries("g", "one");
  Commit(feed, {}, NowUs());
  const Followed before = Follow(Request(), {[&] {
                                   Commit(feed, {}, NowUs());
                                   Commit(feed, Tick({no}, 1), NowUs());
                                 }});
  Commit(feed, {}, NowUs() - 70'000'000);
  Fold();
  Commit(feed, Tick({no}, 2), NowUs());
  EXPECT_THAT(Values(Begin(Request(before.messages.back().cursor()))), ElementsAre(2));
}

TEST_F(FollowReadsTest, EndsWithTheTrialAndAllThatWasAcked) {
  Feed feed = OpenWriter("a");
  const std::int32_t no = AddSeries("g", "one");
  const Followed followed = Follow(Request(), {[&] {
                                                 Commit(feed, Tick({no}, 1), NowUs());
                                                 SetState(TrialState::kCompleted);
                                               },
                                               [] {}});
  EXPECT_TRUE(followed.status.ok()) << followed.status;
  EXPECT_THAT(Values(followed), ElementsAre(1));
  const auto& last = followed.messages.back();
  EXPECT_EQ(last.state(), v1::TRIAL_STATE_COMPLETED);
  EXPECT_EQ(last.completeness().samples_held(), 1);
  for (std::size_t i = 0; i + 1 < followed.messages.size(); ++i) {
    EXPECT_EQ(followed.messages[i].state(), v1::TRIAL_STATE_RUNNING);
  }
  // One that has ended already: what is asked for, then the end, in one message.
  SetState(TrialState::kFailed);
  auto request = Request();
  request.set_lookback_us(60'000'000);
  const Followed again = Follow(request);
  EXPECT_TRUE(again.status.ok()) << again.status;
  ASSERT_EQ(again.messages.size(), 1U);
  EXPECT_EQ(again.messages[0].state(), v1::TRIAL_STATE_FAILED);
  EXPECT_TRUE(again.messages[0].has_completeness());
  EXPECT_THAT(Values(again), ElementsAre(1));
}

TEST_F(FollowReadsTest, AStreamEndsUnavailableWhenHeadsAreClearedAndSilenceIsBroken) {
  Feed feed = OpenWriter("a");
  const std::int32_t no = AddSeries("g", "one");
  int silent = 0;
  const absl::Time begin = absl::Now();
  const absl::Status status =
      reads_.FollowSamples(Request(), Call(), [&](const v1::FollowSamplesResponse& message) {
        silent += message.samples().empty() ? 1 : 0;
        if (silent == 3) heads_.Clear();
        return true;
      });
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_LT(absl::Now() - begin, absl::Minutes(1)) << "a message a second";
  EXPECT_TRUE(absl::IsUnavailable(Follow(Request()).status)) << "not the owner";
  EXPECT_GT(no, 0);
}

TEST_F(FollowReadsTest, WhatCannotBeAnsweredIsRefused) {
  Feed feed = OpenWriter("a");
  Commit(feed, Tick({AddSeries("g", "one")}, 1), NowUs());
  FollowPlace ahead;
  ASSERT_TRUE(ahead.Pass(feed.opened.writer_no, 5));
  FollowPlace unknown;
  ASSERT_TRUE(unknown.Pass(static_cast<WriterNo>(9), 1));
  const auto with = [&](const std::function<void(v1::FollowSamplesRequest&)>& change) {
    auto request = Request();
    change(request);
    return request;
  };
  using Request = v1::FollowSamplesRequest;
  const struct {
    const char* name;
    Request request;
    absl::StatusCode code;
    const char* says;
  } rows[] = {
      {"no trial", with([](Request& r) { r.clear_trial(); }), absl::StatusCode::kInvalidArgument,
       "trial is missing"},
      {"unknown trial", with([](Request& r) { r.mutable_trial()->set_external_id("x"); }),
       absl::StatusCode::kNotFound, "x"},
      {"lookback", with([](Request& r) { r.set_lookback_us(60'000'001); }),
       absl::StatusCode::kInvalidArgument, "lookback_us is 60000001; allowed: 0 ... 60000000"},
      {"lookback below 0", with([](Request& r) { r.set_lookback_us(-1); }),
       absl::StatusCode::kInvalidArgument, "lookback_us"},
      {"a selector", with([](Request& r) { r.add_selectors()->set_name(std::string(2000, 'x')); }),
       absl::StatusCode::kInvalidArgument, "selectors[0].name"},
      {"selectors", with([](Request& r) {
         for (int i = 0; i < 1001; ++i) r.add_selectors();
       }),
       absl::StatusCode::kInvalidArgument, "selectors has 1001"},
      {"cursor", with([](Request& r) { r.set_cursor("x"); }), absl::StatusCode::kInvalidArgument,
       "cursor: this is no cursor"},
      {"beyond the writer",
       with([&](Request& r) { r.set_cursor(ahead.ToCursor(Uuid(), trial_id_)); }),
       absl::StatusCode::kInvalidArgument, "cursor: the database holds less"},
      {"unknown writer",
       with([&](Request& r) { r.set_cursor(unknown.ToCursor(Uuid(), trial_id_)); }),
       absl::StatusCode::kInvalidArgument, "cursor: the database holds less"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const absl::Status status =
        reads_.FollowSamples(row.request, Call(), [](const auto&) { return false; });
    EXPECT_EQ(status.code(), row.code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(row.says));
  }
}

}  // namespace
}  // namespace stepwell
