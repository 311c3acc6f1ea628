// A read of many pages ends soon after its deadline, and once nobody waits for it: between two questions to the
// database, whatever it was made of. One that is short asks nobody for that.
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "storage/read_patience.h"
#include "tests/contract/query/query_reads_fixture.h"

namespace stepwell {
namespace {

// More than a statement asks for, so that there are several slices of several pages.
constexpr int kLongSeries = 600;
constexpr int kLongMerges = 13;
// Longer than a read goes on without a look whether somebody waits.
const absl::Duration kSlowAnswer = ReadPatience::kLookEach + absl::Milliseconds(50);

class LongReadsTest : public QueryReadsTest {
 protected:
  LongReadsTest() {
    Feed feed = OpenWriter("job");
    std::vector<SeriesDefinition> definitions;
    for (int i = 0; i < kLongSeries; ++i) {
      definitions.push_back({{"timing", absl::StrCat("scope_", i), {{"rank", "0"}}},
                             "seconds",
                             SeriesKind::kDuration});
    }
    const auto numbers = ingest_->FindOrCreateSeries(trial_id_, definitions, 10'000);
    EXPECT_TRUE(numbers.ok()) << numbers.status();
    for (int merge = 0; merge < kLongMerges; ++merge) {
      TickTable table;
      table.tick_group = 1;
      for (int i = 0; i < 2; ++i) {
        table.times_us.push_back(kStartUs + (2 * merge + i) * INT64_C(1'000'000));
        table.batches.push_back(2 * merge + i);
      }
      for (const SeriesNo series_no : *numbers) {
        table.columns.push_back({.series_no = series_no, .values = {0.5, 0.25}, .presence = {}});
      }
      Commit(feed, {std::move(table)}, kStartUs);
      Fold();
      Merge(1);
    }
  }

  // Every read that may be long, by its name.
  using Read = std::function<absl::Status(const ReadCall&)>;
  std::map<std::string, Read> Reads() {
    return {
        {"QueryBuckets",
         [&](const ReadCall& call) { return watched_.QueryBuckets(Buckets(), call).status(); }},
        {"ReadSamples",
         [&](const ReadCall& call) {
           v1::ReadSamplesRequest request;
           *request.mutable_trial() = Ref();
           return watched_.ReadSamples(request, call, [](const auto&) { return true; });
         }},
        {"SummarizeTimings",
         [&](const ReadCall& call) {
           v1::SummarizeTimingsRequest request;
           *request.mutable_trial() = Ref();
           return watched_.SummarizeTimings(request, call).status();
         }},
        {"CompareTrials",
         [&](const ReadCall& call) {
           v1::CompareTrialsRequest request;
           *request.add_trials() = Ref();
           *request.add_trials() = Ref("other");
           return watched_.CompareTrials(request, call).status();
         }},
        {"ListTrials",
         [&](const ReadCall& call) { return watched_.ListTrials({}, call).status(); }},
    };
  }
  static v1::QueryBucketsRequest Buckets() {
    v1::QueryBucketsRequest request;
    *request.mutable_trial() = Ref();
    request.set_resolution(v1::RESOLUTION_RAW);
    request.set_max_buckets(30);
    return request;
  }

  // Trials whose newest samples are not folded: their writers are asked for, one trial after the other.
  void AddOthers(int count) {
    for (int i = 0; i < count; ++i) {
      Turn(i == 0 ? "other" : absl::StrCat("other_", i));
      Feed feed = OpenWriter("job");
      TickTable table;
      table.tick_group = 1;
      table.times_us = {kStartUs};
      table.batches = {0};
      table.columns.push_back(
          {.series_no = SeriesNo{AddSeries("timing", "scope_1")}, .values = {1}, .presence = {}});
      Commit(feed, {std::move(table)}, kStartUs);
    }
    Turn("run");
  }

  void Watch(std::span<const ReadStatement> statements) {
    ++trip_count_;
    for (const ReadStatement& one : statements) {
      if (absl::StrContains(one.statement.sql.c_str(), "'statement_timeout'")) ++limit_count_;
    }
    if (on_trip_) on_trip_();
  }

  // Once the reader remembers what it can.
  int CountTrips(const Read& read) {
    on_trip_ = nullptr;
    EXPECT_TRUE(read(Call()).ok());
    trip_count_ = 0;
    EXPECT_TRUE(read(Call()).ok());
    return trip_count_;
  }

  int trip_count_ = 0;
  int limit_count_ = 0;  // statements that say how long one may run
  std::function<void()> on_trip_;
  PgReader watching_{{.url = url_, .watch = [this](auto statements) { Watch(statements); }}};
  QueryReads watched_{QuerySources{watching_, heads_, RealClock::Get(), liveness_}};
};

TEST_F(LongReadsTest, EndAtTheirDeadline) {
  AddOthers(8);
  for (const auto& [name, read] : Reads()) {
    SCOPED_TRACE(name);
    // Its last but one question is slow.
    const int slow = CountTrips(read) - 1;
    ASSERT_GE(slow, 3);
    trip_count_ = 0;
    ReadCall call = Call();
    call.deadline = SteadyTime::Now() + absl::Milliseconds(1'000);
    on_trip_ = [&] {
      while (trip_count_ == slow && !call.deadline.HasPassed()) {
        absl::SleepFor(absl::Milliseconds(5));
      }
    };
    const absl::Status status = read(call);
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_LE(trip_count_, slow);
  }
}

TEST_F(LongReadsTest, EndOnceNobodyWaits) {
  AddOthers(8);
  for (const auto& [name, read] : Reads()) {
    SCOPED_TRACE(name);
    const int slow = CountTrips(read) - 1;
    ASSERT_GE(slow, 3);
    trip_count_ = 0;
    ReadCall call = Call();
    bool is_gone = false;
    call.cancelled = [&] { return is_gone; };
    on_trip_ = [&] {
      if (trip_count_ != slow) return;
      is_gone = true;
      absl::SleepFor(kSlowAnswer);
    };
    const absl::Status status = read(call);
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
    EXPECT_EQ(trip_count_, slow);
  }
}

TEST_F(LongReadsTest, TellTheDatabaseHowLittleTimeIsLeft) {
  on_trip_ = [&] {
    if (trip_count_ == 5) absl::SleepFor(kSlowAnswer);
  };
  const SteadyTime begin = SteadyTime::Now();
  ASSERT_TRUE(watched_.QueryBuckets(Buckets(), Call()).ok());
  EXPECT_GE(limit_count_, 2) << "as it began, and behind the slow one";
  EXPECT_LE(limit_count_ - 1, (SteadyTime::Now() - begin) / ReadPatience::kLookEach)
      << "and not with each page";
}

TEST_F(LongReadsTest, AShortOneAsksNobody) {
  v1::QueryBucketsRequest request = Buckets();
  for (int i = 0; i < 3; ++i) request.add_selectors()->set_name(absl::StrCat("scope_", i));
  int asked_count = 0;
  ReadCall call = Call();
  call.cancelled = [&] {
    ++asked_count;
    return false;
  };
  // A busy machine may make it a long one.
  const SteadyTime give_up = SteadyTime::Now() + absl::Seconds(60);
  for (bool was_short = false; !was_short;) {
    ASSERT_FALSE(give_up.HasPassed());
    asked_count = trip_count_ = limit_count_ = 0;
    const SteadyTime begin = SteadyTime::Now();
    const auto answer = watched_.QueryBuckets(request, call);
    was_short = SteadyTime::Now() - begin < ReadPatience::kLookEach;
    ASSERT_TRUE(answer.ok()) << answer.status();
    ASSERT_EQ(answer->series_size(), 3);
  }
  EXPECT_EQ(asked_count, 0);
  EXPECT_EQ(limit_count_, 1) << "as it began";
}

}  // namespace
}  // namespace stepwell
