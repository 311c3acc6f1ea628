// Who owns the database is asked by transactions that may last (opens, sweeps, moves), while the owner renews and others wait
// to take it. Must survive: a transaction of a former owner that commits behind a take-over; a renewal that hangs behind the
// owner's own transactions.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "storage/pg_owner.h"
#include "tests/contract/pg_store_test.h"

namespace stepwell {
namespace {

using testing::Connect;
using testing::kEpoch;
using testing::PgStoreTest;

class OwnerLocksTest : public PgStoreTest {
 protected:
  void SetUp() override {
    PgStoreTest::SetUp();
    const auto owner = ingest_->AcquireOwnership({.master_id = "a", .address = "a:1"});
    ASSERT_TRUE(owner.ok()) << owner.status();
    ASSERT_EQ(owner->epoch, kEpoch);
  }
  // Of one who stands by.
  Ownership Look(const std::string& master_id) {
    const auto seen = ingest_->AcquireOwnership({.master_id = master_id, .address = "b:1"});
    EXPECT_TRUE(seen.ok() && !seen->is_owner) << seen.status();
    return seen.value_or(Ownership());
  }
};

// Set forward it makes a renewal old that is not, set back one young that is.
TEST_F(OwnerLocksTest, AClockThatIsSetEndsNoOwnershipAndKeepsNone) {
  for (const char* set : {"- interval '1 hour'", "+ interval '1 day'"}) {
    SCOPED_TRACE(set);
    Run(absl::StrCat("update stepwell.masters set renewed_time = renewed_time ", set));
    EXPECT_FALSE(Look("b").is_owner);
  }
  const auto taken = ingest_->AcquireOwnership(
      {.master_id = "b", .address = "b:1", .lapsed_renewal_us = Look("b").renewal_us});
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_TRUE(taken->is_owner);
}

TEST_F(OwnerLocksTest, ARenewalWaitsForNoneOfTheOwnersTransactions) {
  const auto asks = Connect(url_);
  ASSERT_TRUE(asks->Begin().ok());
  ASSERT_TRUE(CheckMaster(*asks, kEpoch).ok());
  const auto renewed = ingest_->AcquireOwnership(
      {.master_id = "a", .address = "a:1", .epoch = kEpoch, .last_epoch = kEpoch});
  ASSERT_TRUE(renewed.ok()) << renewed.status();
  EXPECT_TRUE(renewed->is_owner);
  EXPECT_EQ(renewed->epoch, kEpoch);
  ASSERT_TRUE(asks->Commit().ok());
}

TEST_F(OwnerLocksTest, ATakeOverWaitsForATransactionThatAskedAndEndsTheNext) {
  const auto asks = Connect(url_);
  ASSERT_TRUE(asks->Begin().ok());
  ASSERT_TRUE(CheckMaster(*asks, kEpoch).ok());
  // It is not renewed for longer than it lasts.
  const std::int64_t lapsed_us = Look("b").renewal_us;
  std::atomic<bool> is_taken = false;
  std::thread other([&] {
    const auto taken = ingest_->AcquireOwnership(
        {.master_id = "b", .address = "b:1", .lapsed_renewal_us = lapsed_us});
    is_taken = true;
    ASSERT_TRUE(taken.ok()) << taken.status();
    EXPECT_TRUE(taken->is_owner);
    EXPECT_GT(taken->epoch, kEpoch);
  });
  AwaitLockWait();
  EXPECT_FALSE(is_taken);
  EXPECT_TRUE(asks->Commit().ok());
  other.join();
  ASSERT_TRUE(asks->Begin().ok());
  EXPECT_EQ(CheckMaster(*asks, kEpoch).code(), absl::StatusCode::kAborted);
}

// Whoever wanted it was told that it may not be taken yet, and held nothing: lapsed or released since, it is the next claim's,
// which waits. A trial that is being opened would else be fenced by nobody, and what was acked for it be passed over.
TEST_F(OwnerLocksTest, AnOwnershipThatEndsBehindTheLookIsNotTakenWithoutWaiting) {
  const auto asks = Connect(url_);
  ASSERT_TRUE(asks->Begin().ok());
  ASSERT_TRUE(CheckMaster(*asks, kEpoch).ok());
  const auto releases = Connect(url_);
  ASSERT_TRUE(releases->Begin().ok());
  ASSERT_TRUE(releases->Exec("update stepwell.masters set renewed_time = to_timestamp(0)").ok());
  absl::StatusOr<Ownership> taken = absl::UnknownError("not asked");
  std::thread other(
      [&] { taken = ingest_->AcquireOwnership({.master_id = "b", .address = "b:1"}); });
  AwaitLockWait();
  ASSERT_TRUE(releases->Commit().ok());
  other.join();
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_FALSE(taken->is_owner) << "while a transaction of the former owner may still commit";
  std::atomic<bool> is_taken = false;
  std::thread again([&] {
    taken = ingest_->AcquireOwnership({.master_id = "b", .address = "b:1"});
    is_taken = true;
  });
  AwaitLockWait();
  EXPECT_FALSE(is_taken);
  EXPECT_TRUE(asks->Commit().ok());
  again.join();
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_TRUE(taken->is_owner);
  EXPECT_GT(taken->epoch, kEpoch);
}

TEST_F(OwnerLocksTest, OfTwoThatBeginADatabaseOneOwnsIt) {
  Run("delete from stepwell.masters");
  const auto begins = Connect(url_);
  ASSERT_TRUE(begins->Begin().ok());
  ASSERT_TRUE(
      begins
          ->Exec("insert into stepwell.masters (slot, master_id, epoch, address, "
                 "renewed_time, migration) values (0, 'c', 1, 'c:1', clock_timestamp(), 20)")
          .ok());
  absl::StatusOr<Ownership> other = absl::UnknownError("not asked");
  std::thread asks(
      [&] { other = ingest_->AcquireOwnership({.master_id = "b", .address = "b:1"}); });
  AwaitLockWait();
  ASSERT_TRUE(begins->Commit().ok());
  asks.join();
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_FALSE(other->is_owner);
  EXPECT_EQ(other->owner_id, "c");
}

// It may wait, too: behind one that takes the database at that moment, and sees it then.
TEST_F(OwnerLocksTest, WhoAsksDuringATakeOverSeesTheNewOwner) {
  const auto takes = Connect(url_);
  ASSERT_TRUE(takes->Begin().ok());
  ASSERT_TRUE(takes->Exec(SqlOf("select from stepwell.masters where slot = 0 for update")).ok());
  ASSERT_TRUE(
      takes->Exec(SqlOf("update stepwell.masters set epoch = epoch + 1, master_id = 'b'")).ok());
  std::thread asks([&] {
    const auto former = Connect(url_);
    ASSERT_TRUE(former->Begin().ok());
    EXPECT_EQ(CheckMaster(*former, kEpoch).code(), absl::StatusCode::kAborted);
  });
  AwaitLockWait();
  ASSERT_TRUE(takes->Commit().ok());
  asks.join();
}

}  // namespace
}  // namespace stepwell
