#include "storage/owner_sight.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

constexpr absl::Duration kKept = absl::Milliseconds(100);
const SteadyTime kBegin = SteadyTime::Now();

OwnerSight::Moment At(absl::Duration after, std::int64_t memory_age = 7) {
  return {kBegin + after, memory_age};
}
const OwnerSight::Moment kAsked = At(absl::ZeroDuration());

TEST(OwnerSightTest, WasSeenFromTheQuestionOnForAsLongAsItIsKept) {
  OwnerSight sight(kKept);
  EXPECT_FALSE(sight.Saw(3, kAsked));
  sight.Note(3, kAsked);
  EXPECT_TRUE(sight.Saw(3, kAsked));
  EXPECT_TRUE(sight.Saw(3, At(kKept - absl::Microseconds(1))));
  EXPECT_FALSE(sight.Saw(3, At(kKept)));
}

TEST(OwnerSightTest, OfAnotherEpochNothingWasSeen) {
  OwnerSight sight(kKept);
  sight.Note(3, kAsked);
  EXPECT_FALSE(sight.Saw(2, kAsked));
  EXPECT_FALSE(sight.Saw(4, kAsked));
  sight.Note(4, At(absl::Milliseconds(1)));
  EXPECT_FALSE(sight.Saw(3, At(absl::Milliseconds(1))));
  EXPECT_TRUE(sight.Saw(4, At(absl::Milliseconds(1))));
}

TEST(OwnerSightTest, AnAnswerThatComesLateChangesNothing) {
  OwnerSight sight(kKept);
  sight.Note(4, At(absl::Milliseconds(1)));
  sight.Note(3, kAsked);
  EXPECT_FALSE(sight.Saw(3, kAsked));
  EXPECT_TRUE(sight.Saw(4, At(absl::Milliseconds(1))));
}

TEST(OwnerSightTest, NothingIsKeptOfADatabaseThatMayBeAnother) {
  OwnerSight sight(kKept);
  sight.Note(3, At(absl::ZeroDuration(), 7));
  EXPECT_FALSE(sight.Saw(3, At(absl::ZeroDuration(), 8)));
  // Nor of one that answered when another was connected to already.
  sight.Note(3, At(absl::Milliseconds(1), 7));
  EXPECT_FALSE(sight.Saw(3, At(absl::Milliseconds(1), 8)));
  EXPECT_TRUE(sight.Saw(3, At(absl::Milliseconds(1), 7)));
}

TEST(OwnerSightTest, NobodyIsNoOwnerAndNothingIsKeptWhereNothingIsToBe) {
  OwnerSight sight(kKept);
  sight.Note(0, kAsked);
  EXPECT_FALSE(sight.Saw(0, kAsked));
  OwnerSight none(absl::ZeroDuration());
  none.Note(3, kAsked);
  EXPECT_FALSE(none.Saw(3, kAsked));
}

}  // namespace
}  // namespace stepwell
