#include "server/master_state.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

TEST(MasterStateTest, ReadsGoByNoEpochOnceItsLossWasReported) {
  MasterState state;
  EXPECT_EQ(state.undoubted_epoch(), 0);
  state.BecomeOwner(3, /*recovering=*/false);
  EXPECT_EQ(state.undoubted_epoch(), 3);
  state.ReportLost(2);
  EXPECT_EQ(state.undoubted_epoch(), 3) << "an ownership of before";
  state.ReportLost(3);
  EXPECT_EQ(state.undoubted_epoch(), 0);
  EXPECT_EQ(state.epoch(), 3) << "nobody has looked after it yet";
  ASSERT_TRUE(state.EndOwnership(3, [] {}));
  EXPECT_EQ(state.undoubted_epoch(), 0);
  state.BecomeOwner(4, /*recovering=*/false);
  EXPECT_EQ(state.undoubted_epoch(), 4);
}

TEST(MasterStateTest, StrangersAreNotToldWhoTheOwnerIs) {
  MasterState state;
  state.SetDatabase(absl::OkStatus());
  EXPECT_EQ(state.Get().public_reason(), "starting");
  state.BecomeStandby("master-b", 1.5);
  EXPECT_EQ(state.Get().reason(), "standby: master-b owns the database, renewed 1.5 s ago");
  EXPECT_EQ(state.Get().public_reason(), "standby");
  state.SetDatabase(absl::UnavailableError("connection refused"));
  EXPECT_EQ(state.Get().public_reason(), state.Get().reason());
  state.StartDraining();
  EXPECT_EQ(state.Get().public_reason(), "draining: this master is stopping");
}

}  // namespace
}  // namespace stepwell
