// Newest values that are answered from memory say what the database would say: whatever this master, or
// another one, does to the trial in between.
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "base/worker.h"
#include "google/protobuf/util/message_differencer.h"
#include "tests/contract/query/remembering_fixture.h"
#include "tests/support/sql_of.h"

namespace stepwell {
namespace {

using google::protobuf::util::MessageDifferencer;

class RememberedBookTest : public RememberingTest {
 protected:
  v1::LatestValuesRequest Request() const {
    v1::LatestValuesRequest request;
    *request.mutable_trial() = Ref(external_id_);
    return request;
  }

  // The answer from memory, once it is seen to be that of the database.
  v1::LatestValuesResponse Ask(const std::string& after, const std::string& name = "") {
    v1::LatestValuesRequest request = Request();
    request.mutable_selector()->set_name(name);
    auto told = remembering_.LatestValues(request, Call());
    auto stored = reads_.LatestValues(request, Call());
    EXPECT_EQ(told.status().code(), stored.status().code())
        << after << ": " << told.status() << ", not " << stored.status();
    if (!told.ok() || !stored.ok()) return {};
    for (auto* each : {&*told, &*stored}) each->mutable_completeness()->clear_answered_time_us();
    EXPECT_TRUE(MessageDifferencer::Equals(*told, *stored))
        << after << ": " << told->ShortDebugString() << "\nnot\n"
        << stored->ShortDebugString();
    return *told;
  }
  // Whether the last question read the trial's book.
  bool ReadsBook() {
    const int before = book_read_count_;
    EXPECT_TRUE(remembering_.LatestValues(Request(), Call()).ok());
    return book_read_count_ != before;
  }
  // Rows asked, book remembered.
  void Warm() {
    EXPECT_TRUE(remembering_.LatestValues(Request(), Call()).ok());
    EXPECT_TRUE(remembering_.LatestValues(Request(), Call()).ok());
    EXPECT_FALSE(ReadsBook());
  }
};

TEST_F(RememberedBookTest, AWarmTrialCostsOneLookAtItsOwner) {
  Send();
  Fold();
  Warm();
  for (int i = 0; i < 10; ++i) Send();
  const std::int64_t before = *trip_count_;
  EXPECT_FALSE(ReadsBook()) << "samples alone change no book";
  EXPECT_EQ(*trip_count_ - before, 1);
  Ask("samples");
  Ask("one", "value_3");
  Ask("none", "unknown");
}

TEST_F(RememberedBookTest, WhateverHappensToATrialIsTold) {
  const std::vector<std::function<void()>> deeds = {
      [&] { Send(); },
      [&] { Send({Loss(3)}); },
      [&] { Fold(); },
      [&] { Merge(1); },
      [&] { CloseWriter(); },
      [&] { feed_ = OpenWriter("job", false, static_cast<std::int32_t>(random_() % 4), 4); },
      [&] { series_.push_back(AddSeries("gpu", absl::StrCat("value_", series_.size()))); },
      [&] { AddSeries("gpu", absl::StrCat("never_", random_() % 3)); },
      [&] { Sweep(); },
      [&] { EXPECT_TRUE(caps_.NoteWindowOver(kEpoch, trial_id_, kStartUs).ok()); },
      [&] { EXPECT_TRUE(ingest_->SetTrialState(trial_id_, TrialState::kLost, kEpoch).ok()); },
      [&] {
        EXPECT_TRUE(caps_.Archive(kEpoch, {.external_id = external_id_}, kAllProjects, false).ok());
      },
  };
  ASSERT_TRUE(caps_.Set(kEpoch, {}, kAllProjects, {.raw_age_seconds = 86'400}, {}).ok());
  Send();
  int from_memory = 0;
  for (int round = 0; round < 150; ++round) {
    const std::size_t deed = random_() % deeds.size();
    // A writer that was closed sends no more.
    if (deed == 4) {
      CloseWriter();
      Ask("a close");
      feed_ = OpenWriter("job");
    } else {
      deeds[deed]();
    }
    if (HasFatalFailure()) return;
    Ask(absl::StrCat("deed ", deed, " of round ", round), random_() % 4 == 0 ? "value_1" : "");
    from_memory += ReadsBook() ? 0 : 1;
    Ask("nothing");
  }
  EXPECT_GE(from_memory, 100);
}

TEST_F(RememberedBookTest, ADeletedTrialIsNotFoundByItsNameNorByItsNumber) {
  Send();
  Warm();
  ASSERT_TRUE(caps_.Delete(kEpoch, {.external_id = external_id_}, kAllProjects).ok());
  Ask("delete");
  v1::LatestValuesRequest request = Request();
  EXPECT_TRUE(absl::IsNotFound(remembering_.LatestValues(request, Call()).status()));
  request.mutable_trial()->Clear();
  request.mutable_trial()->set_trial_id(Value(trial_id_));
  EXPECT_TRUE(absl::IsNotFound(remembering_.LatestValues(request, Call()).status()));
}

TEST_F(RememberedBookTest, AnotherMasterMayHaveChangedIt) {
  Send();
  Fold();
  Warm();
  // It shares nothing with us, and we go on believing that we own the database.
  auto theirs = PgIngestStore::Open({.url = url_}, std::make_shared<JournalRing>());
  ASSERT_TRUE(theirs.ok());
  ASSERT_TRUE(ingest_->ReleaseOwnership("ours", kEpoch).ok());
  EXPECT_FALSE(ReadsBook()) << "nobody has taken it yet";
  const auto taken = (*theirs)->AcquireOwnership({.master_id = "theirs", .address = "there"});
  ASSERT_TRUE(taken.ok() && taken->is_owner) << taken.status();
  PgCapsStore their_caps({.url = url_});
  ASSERT_TRUE(their_caps.NoteWindowOver(taken->epoch, trial_id_, kStartUs).ok());
  const auto answer = Ask("a take-over");
  EXPECT_GT(answer.completeness().gaps_size(), 0);
  EXPECT_TRUE(ReadsBook());
  ASSERT_TRUE(their_caps.Delete(taken->epoch, {.external_id = external_id_}, kAllProjects).ok());
  Ask("a delete by the other");
  EXPECT_TRUE(absl::IsNotFound(remembering_.LatestValues(Request(), Call()).status()));
}

TEST_F(RememberedBookTest, WhoOwnsNothingTakesNewestValuesFromRowsEachTime) {
  while (!Send()) {
  }
  Fold();
  const auto ask_a_standby = [&](Heads& heads, std::int64_t believed_epoch) {
    const QueryReads reads(QuerySources{.store = remembering_reader_,
                                        .heads = heads,
                                        .clock = RealClock::Get(),
                                        .liveness = liveness_,
                                        .owner_epoch = [=] { return believed_epoch; }});
    auto answer = reads.LatestValues(Request(), Call());
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? *answer : v1::LatestValuesResponse();
  };
  const auto newest = [](const v1::LatestValuesResponse& answer) {
    std::int64_t time_us = 0;
    for (const auto& value : answer.values()) time_us = std::max(time_us, value.time_us());
    return time_us;
  };
  Heads of_a_standby;
  Heads of_a_former_owner;
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(newest(ask_a_standby(of_a_standby, 0)), points_.back().time_us) << round;
    EXPECT_EQ(newest(ask_a_standby(of_a_former_owner, kEpoch + 1)), points_.back().time_us)
        << round;
    const std::size_t count = points_.size();
    while (points_.size() == count) Send();
    Fold();
  }
}

TEST_F(RememberedBookTest, ABookOfAFormerOwnershipIsNotUsed) {
  Send();
  Warm();
  owner_epoch_ = 0;
  EXPECT_TRUE(ReadsBook()) << "a standby asks";
  owner_epoch_ = kEpoch;
  Warm();
  // Lost and taken again, with a change by the other in between that nobody tells us of.
  const auto connection = testing::Connect(url_);
  ASSERT_TRUE(
      connection
          ->ExecScript(SqlOf(absl::StrCat("update stepwell.masters set epoch = 3; ", kForeignGap)))
          .ok());
  owner_epoch_ = 3;
  EXPECT_EQ(Ask("taken again").completeness().samples_missing(), 5);
}

TEST_F(RememberedBookTest, ADatabaseThatWasAwayIsReadAnew) {
  Send();
  Warm();
  const auto connection = testing::Connect(url_);
  ASSERT_TRUE(connection
                  ->ExecScript(SqlOf(
                      absl::StrCat("select pg_terminate_backend(pid) from pg_stat_activity where "
                                   "application_name = 'stepwell read'; ",
                                   kForeignGap)))
                  .ok());
  // The first ones find their connections closed.
  for (int i = 0; i < 20 && !reads_.LatestValues(Request(), Call()).ok(); ++i) {
  }
  for (int i = 0; i < 20 && !remembering_.LatestValues(Request(), Call()).ok(); ++i) {
  }
  EXPECT_EQ(Ask("away").completeness().samples_missing(), 5);
}

TEST_F(RememberedBookTest, NothingIsRememberedWhileAChangeIsUnderWayOrInDoubt) {
  Send();
  Warm();
  changes_->Begin(BookScope::Of(trial_id_));
  EXPECT_TRUE(ReadsBook());
  EXPECT_TRUE(ReadsBook());
  changes_->End(BookScope::Of(trial_id_), BookChanges::Outcome::kNothing);
  EXPECT_FALSE(ReadsBook()) << "what was remembered before holds again";
  changes_->Begin(BookScope::Of(trial_id_));
  changes_->End(BookScope::Of(trial_id_), BookChanges::Outcome::kInDoubt);
  EXPECT_TRUE(ReadsBook());
  EXPECT_TRUE(ReadsBook());
}

TEST_F(RememberedBookTest, ReadsBesideChangesTellWhatWasAckedBeforeThem) {
  Send();
  Warm();
  std::atomic<bool> stop = false, rests = false;
  std::atomic<int> read_count = 0;
  std::atomic<std::int64_t> declared = 0;
  std::atomic<std::int64_t> acked = static_cast<std::int64_t>(points_.size());
  std::atomic<std::int64_t> begun = acked + 5;
  std::atomic<std::int64_t> declaring = 0;
  const auto read_on = [&] {
    while (!stop) {
      while (rests) std::this_thread::yield();
      const std::int64_t acked_before = acked;
      const std::int64_t declared_before = declared;
      const auto answer = remembering_.LatestValues(Request(), Call());
      ASSERT_TRUE(answer.ok()) << answer.status();
      const v1::Completeness& told = answer->completeness();
      ASSERT_GE(told.samples_held(), acked_before);
      ASSERT_LE(told.samples_held(), begun);
      ASSERT_GE(told.samples_missing(), declared_before);
      ASSERT_LE(told.samples_missing(), declaring);
      ++read_count;
    }
  };
  Worker one("reader", read_on);
  Worker two("reader", read_on);
  for (int round = 0; (round < 100 || read_count < 200) && round < 5000; ++round) {
    const std::int64_t loss = random_() % 4 == 0 ? 1 + static_cast<std::int64_t>(random_() % 9) : 0;
    begun = acked + static_cast<std::int64_t>(series_.size());
    declaring = declared + loss;
    const bool sent = Send(loss == 0 ? std::vector<Gap>{} : std::vector<Gap>{Loss(loss)});
    if (sent) declared += loss;
    acked = static_cast<std::int64_t>(points_.size());
    if (random_() % 3 == 0) random_() % 2 == 0 ? FoldBulkBeside(rests) : Fold();
    if (random_() % 5 == 0) Merge(1);
    if (random_() % 7 == 0) series_.push_back(AddSeries("gpu", absl::StrCat("more_", round)));
  }
  stop = true;
  one.Join();
  two.Join();
  EXPECT_GT(bulk_fold_count_, 0);
  EXPECT_GE(read_count, 200);
}

}  // namespace
}  // namespace stepwell
