// Charts that are answered from memory say what the database would say: whatever this master, or another one,
// does to the trial in between.
#include <algorithm>
#include <atomic>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "base/worker.h"
#include "google/protobuf/util/message_differencer.h"
#include "tests/contract/query/remembering_fixture.h"
#include "tests/support/sql_of.h"

namespace stepwell {
namespace {

using google::protobuf::util::MessageDifferencer;

class RememberedChartsTest : public RememberingTest {
 protected:
  v1::QueryBucketsRequest Request(v1::Resolution resolution = v1::RESOLUTION_RAW) const {
    v1::QueryBucketsRequest request;
    *request.mutable_trial() = Ref(external_id_);
    request.set_resolution(resolution);
    request.set_max_buckets(20);
    return request;
  }

  // One of a few that come again and again, with parts of others among them.
  v1::QueryBucketsRequest RandomRequest() {
    v1::QueryBucketsRequest request = Request(static_cast<v1::Resolution>(random_() % 4));
    request.set_max_buckets(random_() % 2 == 0 ? 20 : 3);
    if (random_() % 2 == 0) request.add_selectors()->set_name("value_1");
    if (random_() % 3 == 0) return request;
    const std::int64_t start = static_cast<std::int64_t>(random_() % 3) * 20'000'000;
    request.mutable_time_range()->set_start_time_us(kStartUs + start);
    if (random_() % 2 == 0) {
      request.mutable_time_range()->set_end_time_us(kStartUs + 2 * start + 40'000'000);
    }
    return request;
  }

  // The answer from memory, once it is seen to be that of the database.
  v1::QueryBucketsResponse Ask(const std::string& after, const v1::QueryBucketsRequest& request) {
    auto told = remembering_.QueryBuckets(request, Call());
    auto stored = reads_.QueryBuckets(request, Call());
    EXPECT_EQ(told.status().code(), stored.status().code())
        << after << ": " << told.status() << ", not " << stored.status();
    if (!told.ok() || !stored.ok()) return {};
    for (auto* each : {&*told, &*stored}) each->mutable_completeness()->clear_answered_time_us();
    EXPECT_TRUE(MessageDifferencer::Equals(*told, *stored))
        << after << ": " << request.ShortDebugString() << "\n"
        << told->ShortDebugString() << "\nnot\n"
        << stored->ShortDebugString();
    return *told;
  }
  // Whether the question read the trial's rows, or its book.
  bool ReadsStored(const v1::QueryBucketsRequest& request) {
    const int before = book_read_count_ + row_read_count_;
    EXPECT_TRUE(remembering_.QueryBuckets(request, Call()).ok());
    return book_read_count_ + row_read_count_ != before;
  }
  void Warm(const v1::QueryBucketsRequest& request) {
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(remembering_.QueryBuckets(request, Call()).ok());
    EXPECT_FALSE(ReadsStored(request));
  }
  static std::uint64_t CountOf(const v1::QueryBucketsResponse& answer) {
    std::uint64_t count = 0;
    for (const auto& series : answer.series()) {
      count = std::accumulate(series.counts().begin(), series.counts().end(), count);
    }
    return count;
  }
  void SendMany(int count) {
    for (int i = 0; i < count; ++i) Send();
  }
  // Samples of another trial, folded and nothing else.
  void FoldAnother() {
    const std::string ours = external_id_;
    Turn("another");
    if (!another_) {
      another_ = OpenWriter("job");
      another_series_ = AddSeries("gpu", "value");
    }
    TickTable table;
    table.tick_group = 1;
    table.times_us = {time_us_};
    table.batches = {7};
    table.columns.push_back(
        {.series_no = SeriesNo{another_series_}, .values = {1}, .presence = {}});
    Commit(*another_, {std::move(table)}, received_us_);
    const Heads::FoldPlan plan = heads_.PlanFold(trial_id_, INT64_MAX);
    const auto folded = folds_->Fold(kEpoch, plan.folds);
    ASSERT_TRUE(folded.ok()) << folded.status();
    heads_.Folded(plan.folds, folded->fold_no);
    Turn(ours);
  }

  std::optional<Feed> another_;
  std::int32_t another_series_ = 0;
};

TEST_F(RememberedChartsTest, AWarmChartCostsOneLookAtTheOwner) {
  SendMany(100);
  Fold();
  Merge(1);
  SendMany(10);
  Fold();
  SendMany(10);
  for (const v1::Resolution resolution : {v1::RESOLUTION_RAW, v1::RESOLUTION_10_SECONDS}) {
    v1::QueryBucketsRequest request = Request(resolution);
    // So many that no row lies in one alone and comes without its values.
    request.set_max_buckets(1000);
    Warm(request);
    const std::int64_t before = *trip_count_;
    EXPECT_FALSE(ReadsStored(request));
    EXPECT_EQ(*trip_count_ - before, 1);
    SendMany(1);
    EXPECT_FALSE(ReadsStored(request)) << "samples alone change no book";
    Ask("samples", request);
    // Parts of it: a series, a range, other buckets, and what lies beyond all that is stored.
    request.add_selectors()->set_name("value_3");
    request.set_max_buckets(50);
    request.mutable_time_range()->set_start_time_us(kStartUs + 20'000'000);
    request.mutable_time_range()->set_end_time_us(kStartUs + 60'000'000);
    EXPECT_FALSE(ReadsStored(request));
    Ask("a part", request);
    request.mutable_time_range()->set_end_time_us(kStartUs + kDayUs);
    EXPECT_FALSE(ReadsStored(request));
    Ask("more than there is", request);
  }
}

TEST_F(RememberedChartsTest, WhatBecomesOfOtherTrialsLeavesAChartAsItIs) {
  SendMany(60);
  Fold();
  Merge(1);
  SendMany(10);
  Fold();
  SendMany(10);
  FoldAnother();
  Warm(Request());
  FoldAnother();
  EXPECT_FALSE(ReadsStored(Request())) << "a fold";
  Ask("a fold of another", Request());
  // Merges are of one trial each; ours comes first, and once more than there is to merge.
  for (int i = 0; i < 3; ++i) Merge(1);
  Ask("our merge", Request());
  FoldAnother();
  Warm(Request());
  Merge(1);
  EXPECT_FALSE(ReadsStored(Request())) << "a merge";
  Ask("a merge of another", Request());
}

TEST_F(RememberedChartsTest, AnEarlierRangeIsAsked) {
  SendMany(60);
  Fold();
  Merge(1);
  v1::QueryBucketsRequest request = Request();
  request.mutable_time_range()->set_start_time_us(kStartUs + 40'000'000);
  Warm(request);
  request.mutable_time_range()->set_start_time_us(kStartUs + 10'000'000);
  EXPECT_TRUE(ReadsStored(request));
  Ask("an earlier range", request);
  EXPECT_FALSE(ReadsStored(request));
}

TEST_F(RememberedChartsTest, ALaterRangeIsAsked) {
  for (int i = 0; i < 5; ++i) {
    SendMany(20);
    Fold();
  }
  v1::QueryBucketsRequest request = Request();
  request.mutable_time_range()->set_start_time_us(kStartUs);
  request.mutable_time_range()->set_end_time_us(kStartUs + 30'000'000);
  Warm(request);
  request.mutable_time_range()->set_end_time_us(kStartUs + 90'000'000);
  EXPECT_TRUE(ReadsStored(request));
  Ask("a later range", request);
}

// What was found by a ledger of before it is not kept.
TEST_F(RememberedChartsTest, RowsInALeafThatTheLedgerDidNotKnowAreFound) {
  SendMany(20);
  Fold();
  Merge(1);
  Warm(Request());
  received_us_ += kDayUs;
  SendMany(20);
  Fold();
  Merge(1);
  for (int i = 0; i < 3; ++i) Ask("a leaf more", Request());
}

TEST_F(RememberedChartsTest, RowsWithoutVectorsServeNoFinerBuckets) {
  SendMany(50);
  Fold();
  v1::QueryBucketsRequest request = Request();
  request.mutable_time_range()->set_start_time_us(kStartUs);
  request.mutable_time_range()->set_end_time_us(kStartUs + 100'000'000);
  request.set_max_buckets(1);
  Warm(request);
  request.set_max_buckets(100);
  Ask("wider buckets", request);
}

TEST_F(RememberedChartsTest, WhateverHappensToATrialIsTold) {
  const std::vector<std::function<void()>> deeds = {
      [&] { Send(); },
      [&] { SendMany(20); },
      // Late ones, at times that no other has: which of several is the last nobody says.
      [&] {
        time_us_ -= 15'000'000 - 7;
        SendMany(3);
      },
      [&] { Send({Loss(3)}); },
      [&] { received_us_ = kStartUs + static_cast<std::int64_t>(random_() % 2) * kDayUs; },
      [&] { Fold(); },
      [&] { FoldAnother(); },
      [&] { Merge(1); },
      [&] { Merge(1); },
      [&] { feed_ = OpenWriter("job", false, static_cast<std::int32_t>(random_() % 4), 4); },
      [&] { series_.push_back(AddSeries("gpu", absl::StrCat("value_", series_.size()))); },
      [&] { Sweep(); },
      [&] { EXPECT_TRUE(caps_.NoteWindowOver(kEpoch, trial_id_, kStartUs).ok()); },
      [&] {
        EXPECT_TRUE(caps_.Archive(kEpoch, {.external_id = external_id_}, kAllProjects, false).ok());
      },
      [&] {
        CloseWriter();
        Ask("a close", RandomRequest());
        feed_ = OpenWriter("job");
      },
  };
  ASSERT_TRUE(caps_.Set(kEpoch, {}, kAllProjects, {.series_samples = 200}, {}).ok());
  SendMany(30);
  int from_memory = 0;
  for (int round = 0; round < 100; ++round) {
    const std::size_t deed = random_() % deeds.size();
    deeds[deed]();
    if (HasFatalFailure()) return;
    for (int i = 0; i < 4; ++i) {
      const v1::QueryBucketsRequest request = RandomRequest();
      Ask(absl::StrCat("deed ", deed, " of round ", round), request);
      from_memory += ReadsStored(request) ? 0 : 1;
    }
    if (HasFailure()) return;
  }
  EXPECT_GE(from_memory, 200);
}

TEST_F(RememberedChartsTest, ADeletedTrialIsNotFound) {
  SendMany(20);
  Fold();
  Warm(Request());
  ASSERT_TRUE(caps_.Delete(kEpoch, {.external_id = external_id_}, kAllProjects).ok());
  Ask("delete", Request());
  EXPECT_TRUE(absl::IsNotFound(remembering_.QueryBuckets(Request(), Call()).status()));
}

TEST_F(RememberedChartsTest, AnotherMasterMayHaveChangedIt) {
  SendMany(20);
  Fold();
  Warm(Request());
  auto theirs = PgIngestStore::Open({.url = url_}, std::make_shared<JournalRing>());
  ASSERT_TRUE(theirs.ok());
  ASSERT_TRUE(ingest_->ReleaseOwnership("ours", kEpoch).ok());
  EXPECT_FALSE(ReadsStored(Request())) << "nobody has taken it yet";
  const auto taken = (*theirs)->AcquireOwnership({.master_id = "theirs", .address = "there"});
  ASSERT_TRUE(taken.ok() && taken->is_owner) << taken.status();
  EXPECT_TRUE(ReadsStored(Request()));
  PgCapsStore their_caps({.url = url_});
  ASSERT_TRUE(their_caps.NoteWindowOver(taken->epoch, trial_id_, kStartUs).ok());
  EXPECT_GT(Ask("a take-over", Request()).completeness().gaps_size(), 0);
  ASSERT_TRUE(their_caps.Delete(taken->epoch, {.external_id = external_id_}, kAllProjects).ok());
  Ask("a delete by the other", Request());
}

TEST_F(RememberedChartsTest, WhatAFormerOwnershipReadIsNotUsed) {
  SendMany(20);
  Fold();
  Warm(Request());
  owner_epoch_ = 0;
  EXPECT_TRUE(ReadsStored(Request())) << "a standby asks";
  owner_epoch_ = kEpoch;
  Warm(Request());
  // Lost and taken again, with rows that the other removed in between.
  const auto connection = testing::Connect(url_);
  ASSERT_TRUE(connection
                  ->ExecScript("update stepwell.masters set epoch = 3; "
                               "delete from stepwell.recent")
                  .ok());
  owner_epoch_ = 3;
  EXPECT_EQ(CountOf(Ask("taken again", Request())), 0);
}

TEST_F(RememberedChartsTest, ADatabaseThatWasAwayIsReadAnew) {
  SendMany(20);
  Fold();
  Warm(Request());
  const auto connection = testing::Connect(url_);
  ASSERT_TRUE(connection
                  ->ExecScript(SqlOf(absl::StrCat(
                      "select pg_terminate_backend(pid) from pg_stat_activity where "
                      "application_name = 'stepwell read'; delete from stepwell.recent; ",
                      kForeignGap)))
                  .ok());
  // The first ones find their connections closed.
  for (int i = 0; i < 20 && !reads_.QueryBuckets(Request(), Call()).ok(); ++i) {
  }
  auto told = remembering_.QueryBuckets(Request(), Call());
  for (int i = 0; i < 20 && !told.ok(); ++i) told = remembering_.QueryBuckets(Request(), Call());
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_EQ(CountOf(*told), 0);
  const auto answer = Ask("away", Request());
  EXPECT_EQ(answer.completeness().samples_missing(), 5);
}

TEST_F(RememberedChartsTest, NothingIsRememberedWhileAChangeIsUnderWay) {
  SendMany(20);
  Fold();
  Warm(Request());
  changes_->Begin(BookScope::Of(trial_id_));
  EXPECT_TRUE(ReadsStored(Request()));
  EXPECT_TRUE(ReadsStored(Request()));
  changes_->End(BookScope::Of(trial_id_), BookChanges::Outcome::kNothing);
  EXPECT_FALSE(ReadsStored(Request())) << "what was remembered before holds again";
}

// A fold that is committed, and not yet told to the heads: who pins them then leaves its rows out.
TEST_F(RememberedChartsTest, RowsThatAPinHasInHeadsAreNotTakenForAll) {
  SendMany(20);
  Warm(Request());
  const Heads::FoldPlan plan = heads_.PlanFold(std::nullopt, INT64_MAX);
  const auto folded = folds_->Fold(kEpoch, plan.folds);
  ASSERT_TRUE(folded.ok()) << folded.status();
  const std::uint64_t count = points_.size();
  EXPECT_EQ(CountOf(Ask("a fold's commit", Request())), count);
  EXPECT_EQ(CountOf(Ask("a fold's commit", Request())), count);
  heads_.Folded(plan.folds, folded->fold_no);
  EXPECT_EQ(CountOf(Ask("a fold", Request())), count);
  EXPECT_EQ(CountOf(Ask("a fold", Request())), count);
}

TEST_F(RememberedChartsTest, ReadsBesideChangesTellWhatWasAckedBeforeThem) {
  Send();
  std::atomic<bool> stop = false, rests = false;
  std::atomic<int> read_count = 0;
  std::atomic<std::uint64_t> acked = points_.size();
  std::atomic<std::uint64_t> begun = acked + series_.size();
  const auto read_on = [&] {
    for (int i = 0; !stop; ++i) {
      while (rests) std::this_thread::yield();
      const std::uint64_t acked_before = acked;
      const auto answer = remembering_.QueryBuckets(
          Request(i % 2 == 0 ? v1::RESOLUTION_RAW : v1::RESOLUTION_UNSPECIFIED), Call());
      ASSERT_TRUE(answer.ok()) << answer.status();
      ASSERT_GE(CountOf(*answer), acked_before);
      ASSERT_LE(CountOf(*answer), begun);
      ++read_count;
    }
  };
  Worker one("reader", read_on);
  Worker two("reader", read_on);
  for (int round = 0; (round < 100 || read_count < 200) && round < 5000; ++round) {
    begun = acked + series_.size();
    Send();
    acked = points_.size();
    if (random_() % 3 == 0) random_() % 2 == 0 ? FoldBulkBeside(rests) : Fold();
    if (random_() % 5 == 0) Merge(1);
    if (random_() % 7 == 0) {
      series_.push_back(AddSeries("gpu", absl::StrCat("more_", round)));
    }
  }
  stop = true;
  one.Join();
  two.Join();
  EXPECT_GT(bulk_fold_count_, 0);
  EXPECT_GE(read_count, 200);
}

}  // namespace
}  // namespace stepwell
