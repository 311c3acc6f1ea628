// What a committer finds where its session ended because the database became another one: chunks that wait name series by
// numbers of the one before, so that under the epoch that took that one nothing is committed into this one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/steady_time.h"
#include "tests/contract/pg_store_test.h"

namespace stepwell {
namespace {

using ::testing::HasSubstr;
using testing::kEpoch;

class PgPlaceTest : public testing::PgStoreTest {
 protected:
  PgPlaceTest() {
    const auto owner = ingest_->AcquireOwnership({.master_id = "m", .address = "a:1"});
    EXPECT_TRUE(owner.ok() && owner->look.ok()) << owner.status();
    EXPECT_EQ(owner->epoch, kEpoch);
    writer_ = OpenWriter("t");
    CommitTo(writer_, 1, 1);
  }
  // What `call` says once there is a session again: whoever used the one that ended is told so.
  absl::Status OnNextSession(const std::string& name, const std::function<absl::Status()>& call) {
    KillWhen(url_, absl::StrCat("application_name = '", name, "'"));
    const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(20);
    absl::Status said = call();
    while (absl::IsUnavailable(said) && !deadline.HasPassed()) said = call();
    return said;
  }
  absl::Status Commit(std::uint64_t sequence) {
    return ingest_->Commit(Group({Advance(writer_, sequence)})).status();
  }
  // All of it made anew, as pg_restore --clean does, and as a recovery or a promotion changes its timeline.
  void SetBack() {
    Run("alter table stepwell.database rename to before; "
        "create table stepwell.database (like stepwell.before including all); "
        "insert into stepwell.database select * from stepwell.before; "
        "drop table stepwell.before");
  }

  OpenedWriter writer_;
};

TEST_F(PgPlaceTest, ASessionThatEndedAloneGoesOn) {
  EXPECT_TRUE(OnNextSession("stepwell-commit", [&] { return Commit(2); }).ok());
  EXPECT_EQ(Committed(writer_), 2u);
}

TEST_F(PgPlaceTest, NothingIsCommittedIntoAnotherDatabaseBeforeItsOwnerLooked) {
  SetBack();
  // The session that was there is of the database that is written to, wherever that lies.
  CommitTo(writer_, 2, 2);
  const absl::Status refused = OnNextSession("stepwell-commit", [&] { return Commit(3); });
  EXPECT_EQ(refused.code(), absl::StatusCode::kAborted) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("table oid"));
  EXPECT_EQ(Committed(writer_), 2u);
  EXPECT_EQ(Commit(3).code(), absl::StatusCode::kAborted) << "the same session, asked again";

  // Nor is anything folded.
  const std::vector<TickTable> tables = {Table(1, 1)};
  const absl::Status not_folded = OnNextSession("stepwell-fold", [&] {
    return folds_->Fold(kEpoch, {FoldOf(writer_, 0, 2, tables)}).status();
  });
  EXPECT_EQ(not_folded.code(), absl::StatusCode::kAborted) << not_folded;
  EXPECT_THAT(std::string(not_folded.message()), HasSubstr("table oid"));

  // The owner's next claim, by which it reads all of it again.
  const auto owner = ingest_->AcquireOwnership({"m", "a:1", 0, kEpoch});
  ASSERT_TRUE(owner.ok() && owner->look.ok()) << owner.status();
  ASSERT_GT(owner->epoch, kEpoch);
  ASSERT_TRUE(ingest_->FenceTrials(owner->epoch).ok());
  CommitGroupRequest group = Group({Advance(writer_, 3)});
  group.owner_epoch = owner->epoch;
  const auto committed = ingest_->Commit(group);
  ASSERT_TRUE(committed.ok()) << committed.status();
  EXPECT_EQ(Committed(writer_), 3u);
}

}  // namespace
}  // namespace stepwell
