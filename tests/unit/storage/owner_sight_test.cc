#include "storage/owner_sight.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

constexpr absl::Duration kKept = absl::Milliseconds(100);
const SteadyTime kAsked = SteadyTime::Now();

TEST(OwnerSightTest, WasSeenFromTheQuestionOnForAsLongAsItIsKept) {
  OwnerSight sight(kKept);
  EXPECT_FALSE(sight.Saw(3, kAsked));
  sight.Note(3, kAsked);
  EXPECT_TRUE(sight.Saw(3, kAsked));
  EXPECT_TRUE(sight.Saw(3, kAsked + kKept - absl::Microseconds(1)));
  EXPECT_FALSE(sight.Saw(3, kAsked + kKept));
}

TEST(OwnerSightTest, OfAnotherEpochNothingWasSeen) {
  OwnerSight sight(kKept);
  sight.Note(3, kAsked);
  EXPECT_FALSE(sight.Saw(2, kAsked));
  EXPECT_FALSE(sight.Saw(4, kAsked));
  sight.Note(4, kAsked + absl::Milliseconds(1));
  EXPECT_FALSE(sight.Saw(3, kAsked + absl::Milliseconds(1)));
  EXPECT_TRUE(sight.Saw(4, kAsked + absl::Milliseconds(1)));
}

TEST(OwnerSightTest, AnAnswerThatComesLateChangesNothing) {
  OwnerSight sight(kKept);
  sight.Note(4, kAsked + absl::Milliseconds(1));
  sight.Note(3, kAsked);
  EXPECT_FALSE(sight.Saw(3, kAsked));
  EXPECT_TRUE(sight.Saw(4, kAsked + absl::Milliseconds(1)));
}

TEST(OwnerSightTest, NothingIsKeptOfADatabaseThatMayBeAnotherNorWhereNothingIsToBe) {
  OwnerSight sight(kKept);
  sight.Note(3, kAsked);
  sight.Forget();
  EXPECT_FALSE(sight.Saw(3, kAsked));
  OwnerSight none(absl::ZeroDuration());
  none.Note(3, kAsked);
  EXPECT_FALSE(none.Saw(3, kAsked));
}

}  // namespace
}  // namespace stepwell
