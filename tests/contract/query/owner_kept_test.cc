// A reader that does not ask at each question who owns the database: what that spares, and for how long it may be behind
// another master.
#include <gtest/gtest.h>

#include "base/steady_time.h"
#include "tests/contract/query/remembering_fixture.h"

namespace stepwell {
namespace {

class OwnerKeptTest : public RememberingTest {
 protected:
  // What a master has of its own.
  class Asked {
   public:
    Asked(OwnerKeptTest& test, absl::Duration kept)
        : reader_({.url = test.url_,
                   .book_changes = test.changes_,
                   .owner_kept = kept,
                   .round_trip_count = test.trip_count_}),
          reads_({.store = reader_,
                  .heads = test.heads_,
                  .clock = RealClock::Get(),
                  .liveness = test.liveness_,
                  .owner_epoch = [&test] { return test.owner_epoch_.load(); }}) {
      request_.mutable_trial()->set_external_id(test.external_id_);
      request_.set_resolution(v1::RESOLUTION_RAW);
      latest_.mutable_trial()->set_external_id(test.external_id_);
    }
    absl::Status Chart() { return reads_.QueryBuckets(request_, Call()).status(); }
    absl::Status Newest() { return reads_.LatestValues(latest_, Call()).status(); }
    absl::Status Unknown() {
      v1::GetTrialRequest request;
      request.mutable_trial()->set_external_id("nobody");
      return reads_.GetTrial(request, Call()).status();
    }
    void Warm() {
      for (int i = 0; i < 3; ++i) EXPECT_TRUE(Chart().ok() && Newest().ok());
    }

   private:
    static ReadCall Call() {
      return {.deadline = SteadyTime::Now() + absl::Seconds(30), .readable_projects = kAllProjects};
    }

    PgReader reader_;
    QueryReads reads_;
    v1::QueryBucketsRequest request_;
    v1::LatestValuesRequest latest_;
  };

  void SendAndFold() {
    for (int i = 0; i < 20; ++i) Send();
    Fold();
  }
  // Another master takes the database and deletes the trial.
  void DeleteByAnother() {
    auto theirs = PgIngestStore::Open({.url = url_}, std::make_shared<JournalRing>());
    ASSERT_TRUE(theirs.ok());
    ASSERT_TRUE(ingest_->ReleaseOwnership("ours", kEpoch).ok());
    const auto taken = (*theirs)->AcquireOwnership({.master_id = "theirs", .address = "there"});
    ASSERT_TRUE(taken.ok() && taken->is_owner) << taken.status();
    PgCapsStore their_caps({.url = url_});
    ASSERT_TRUE(their_caps.NoteWindowOver(taken->epoch, trial_id_, kStartUs).ok());
    ASSERT_TRUE(their_caps.Delete(taken->epoch, {.external_id = external_id_}, kAllProjects).ok());
  }
};

TEST_F(OwnerKeptTest, AWarmQuestionAsksNothingWhileTheOwnerWasJustSeen) {
  SendAndFold();
  Asked asked(*this, absl::Hours(1));
  asked.Warm();
  const std::int64_t before = *trip_count_;
  EXPECT_TRUE(asked.Chart().ok());
  EXPECT_TRUE(asked.Newest().ok());
  EXPECT_EQ(*trip_count_ - before, 0);
  // What this process itself does is seen at once.
  ASSERT_TRUE(caps_.Delete(kEpoch, {.external_id = external_id_}, kAllProjects).ok());
  EXPECT_TRUE(absl::IsNotFound(asked.Chart()));
  EXPECT_TRUE(absl::IsNotFound(asked.Newest()));
}

TEST_F(OwnerKeptTest, AMasterThatKnowsThatItLostTheDatabaseAsksAtOnce) {
  SendAndFold();
  Asked asked(*this, absl::Hours(1));
  asked.Warm();
  DeleteByAnother();
  EXPECT_TRUE(asked.Chart().ok()) << "it knows nothing of the other yet";
  owner_epoch_ = 0;
  EXPECT_TRUE(absl::IsNotFound(asked.Chart()));
  EXPECT_TRUE(absl::IsNotFound(asked.Newest()));
}

TEST_F(OwnerKeptTest, WhatAnotherDidIsSeenOnceTheOwnerIsAskedAgain) {
  SendAndFold();
  const absl::Duration kept = absl::Milliseconds(50);
  Asked asked(*this, kept);
  asked.Warm();
  DeleteByAnother();
  const SteadyTime deadline = SteadyTime::Now() + kept + absl::Seconds(10);
  // Each question within the time keeps nothing alive: it counts from the answer that was asked for.
  while (asked.Chart().ok() && !deadline.HasPassed()) {
  }
  EXPECT_TRUE(absl::IsNotFound(asked.Chart()));
  EXPECT_TRUE(absl::IsNotFound(asked.Newest()));
}

}  // namespace
}  // namespace stepwell
