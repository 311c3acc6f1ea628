// Who owns the database is asked by transactions that may last (opens, sweeps, moves), while the owner renews and others wait
// to take it. Must survive: a transaction of a former owner that commits behind a take-over; a renewal that hangs behind the
// owner's own transactions.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

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
};

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
  // As if it had not been renewed for longer than it lasts.
  Run("update stepwell.masters set renewed_time = renewed_time - interval '1 minute'");
  std::atomic<bool> is_taken = false;
  std::thread other([&] {
    const auto taken = ingest_->AcquireOwnership({.master_id = "b", .address = "b:1"});
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
