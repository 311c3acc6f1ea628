// Charts of rows that are not remembered, of a trial whose book is: they read it no more, and yet say what the database
// holds at their own moment.
#include <gtest/gtest.h>

#include <functional>
#include <span>
#include <string>
#include <utility>

#include "google/protobuf/util/message_differencer.h"
#include "tests/contract/query/remembering_fixture.h"
#include "tests/support/sql_of.h"

namespace stepwell {
namespace {

using google::protobuf::util::MessageDifferencer;

class KnownBookTest : public RememberingTest {
 protected:
  KnownBookTest() {
    for (int i = 0; i < 40; ++i) Send();
    Fold();
    Merge(1);
    for (int i = 0; i < 10; ++i) Send();
    Fold();
    Send();
  }

  static v1::QueryBucketsRequest Request(const std::string& external_id, int series,
                                         v1::Resolution resolution = v1::RESOLUTION_RAW) {
    v1::QueryBucketsRequest request;
    *request.mutable_trial() = Ref(external_id);
    request.add_selectors()->set_name(absl::StrCat("value_", series));
    request.set_resolution(resolution);
    request.set_max_buckets(20);
    return request;
  }
  // By a reader that shares nothing with the others but what its process knows of changes.
  v1::QueryBucketsResponse Ask(int series, v1::Resolution resolution = v1::RESOLUTION_RAW) {
    const auto answer = asked_.QueryBuckets(Request(external_id_, series, resolution), Call());
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? *answer : v1::QueryBucketsResponse();
  }
  // So that the book is remembered: the very first question looks for the trial's number, and remembers nothing.
  void Know() {
    Ask(0);
    Ask(0);
    const int before = book_reads_;
    Ask(0);
    EXPECT_EQ(book_reads_, before);
  }
  // The first that is asked of a series, once it is seen to be what the database says.
  void AskFirst(const std::string& after, int series,
                v1::Resolution resolution = v1::RESOLUTION_RAW) {
    auto told = Ask(series, resolution);
    auto stored = reads_.QueryBuckets(Request(external_id_, series, resolution), Call());
    ASSERT_TRUE(stored.ok()) << stored.status();
    for (auto* each : {&told, &*stored}) each->mutable_completeness()->clear_answered_time_us();
    EXPECT_TRUE(MessageDifferencer::Equals(told, *stored))
        << after << ": " << told.ShortDebugString() << "\nnot\n"
        << stored->ShortDebugString();
  }

  void Look(std::span<const ReadStatement> statements) {
    bool has_rows = false;
    for (const ReadStatement& each : statements) {
      book_reads_ += each.query == ReadQuery::kTrial ? 1 : 0;
      has_rows |= each.query == ReadQuery::kRows || each.query == ReadQuery::kRollups;
    }
    if (has_rows && before_rows_ != nullptr) std::exchange(before_rows_, nullptr)();
  }

  int book_reads_ = 0;
  // Once, before a round trip with rows begins: its snapshot is of a moment behind that.
  std::function<void()> before_rows_ = nullptr;
  PgReader reader_{{.url = url_,
                    .book_changes = changes_,
                    .watch = [this](std::span<const ReadStatement> all) { Look(all); },
                    .round_trip_count = trip_count_}};
  QueryReads asked_{QuerySources{.store = reader_,
                                 .heads = heads_,
                                 .clock = RealClock::Get(),
                                 .liveness = liveness_,
                                 .owner_epoch = [this] { return owner_epoch_.load(); }}};
};

TEST_F(KnownBookTest, OfASeriesThatNobodyAskedForRowsAloneAreRead) {
  AskFirst("nothing", 0);
  AskFirst("nothing", 0, v1::RESOLUTION_10_SECONDS);
  const int before = book_reads_;
  EXPECT_GT(before, 0);
  std::int64_t trips = *trip_count_;
  for (int series = 1; series < 5; ++series) {
    Ask(series);
    Ask(series, v1::RESOLUTION_10_SECONDS);
  }
  // Ticks and grids are their writer's, and known.
  EXPECT_EQ(*trip_count_ - trips, 8);
  EXPECT_EQ(book_reads_, before);
  // What they read is remembered as what came with a book is: who owns the database is all that is asked.
  before_rows_ = [] { ADD_FAILURE() << "rows are read again"; };
  trips = *trip_count_;
  for (int series = 1; series < 5; ++series) Ask(series);
  EXPECT_EQ(*trip_count_ - trips, 4);
}

TEST_F(KnownBookTest, TheySayWhatTheDatabaseSays) {
  Know();
  AskFirst("nothing", 1);
  AskFirst("rollups", 2, v1::RESOLUTION_10_SECONDS);
  Send({Loss(3)});
  AskFirst("a loss in heads", 3);
  Fold();
  AskFirst("a fold", 4);
  AskFirst("a fold", 1, v1::RESOLUTION_10_SECONDS);
  Merge(1);
  AskFirst("a merge", 0);
  AskFirst("a merge", 2);
}

TEST_F(KnownBookTest, WhatChangesBeforeTheSnapshotIsTold) {
  Know();
  before_rows_ = [&] {
    changes_->Begin(BookScope::Of(trial_id_));
    ASSERT_TRUE(testing::Connect(url_)->ExecScript(SqlOf(kForeignGap)).ok());
    changes_->End(BookScope::Of(trial_id_), BookChanges::Outcome::kChanged);
  };
  EXPECT_EQ(Ask(1).completeness().samples_missing(), 5);
  // And what is under way there may be in the snapshot.
  Ask(0);
  before_rows_ = [&] {
    changes_->Begin(BookScope::Of(trial_id_));
    ASSERT_TRUE(testing::Connect(url_)->ExecScript(SqlOf(kForeignGap)).ok());
  };
  EXPECT_EQ(Ask(2).completeness().samples_missing(), 10);
  changes_->End(BookScope::Of(trial_id_), BookChanges::Outcome::kChanged);
}

TEST_F(KnownBookTest, WhatAnotherMasterChangesBeforeTheSnapshotIsTold) {
  Know();
  before_rows_ = [&] {
    ASSERT_TRUE(testing::Connect(url_)
                    ->ExecScript(SqlOf(absl::StrCat(
                        "update stepwell.masters set epoch = epoch + 1; ", kForeignGap)))
                    .ok());
  };
  EXPECT_EQ(Ask(1).completeness().samples_missing(), 5);
}

TEST_F(KnownBookTest, ATrialThatIsGoneIsNotFound) {
  Know();
  before_rows_ = [&] {
    EXPECT_TRUE(caps_.Delete(kEpoch, {.external_id = external_id_}, kAllProjects).ok());
  };
  EXPECT_TRUE(absl::IsNotFound(asked_.QueryBuckets(Request(external_id_, 1), Call()).status()));
}

TEST_F(KnownBookTest, WhoOwnsNothingReadsTheBook) {
  Know();
  const int before = book_reads_;
  owner_epoch_ = 0;
  Ask(1);
  EXPECT_GT(book_reads_, before);
}

}  // namespace
}  // namespace stepwell
