#include "storage/read_patience.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

using Looked = ReadPatience::Looked;

constexpr absl::Duration kTime = absl::Seconds(10);
constexpr absl::Duration kLook = ReadPatience::kLookEach;
const SteadyTime kBegin = SteadyTime::Now();

// Ten seconds, from kBegin on.
class ReadPatienceTest : public ::testing::Test {
 protected:
  ReadPatienceTest() {
    patience_.Heed([this] {
      ++asked_count_;
      return is_gone_;
    });
  }
  Looked LookedAt(absl::Duration after) {
    const auto looked = patience_.Ask(kBegin + after);
    EXPECT_TRUE(looked.ok()) << looked.status();
    return looked.ok() ? *looked : Looked::kNo;
  }
  absl::StatusCode CodeAt(absl::Duration after) {
    return patience_.Ask(kBegin + after).status().code();
  }

  int asked_count_ = 0;
  bool is_gone_ = false;
  ReadPatience patience_{kBegin + kTime, kBegin};
};

TEST_F(ReadPatienceTest, AShortReadAsksNobody) {
  is_gone_ = true;
  EXPECT_EQ(LookedAt(absl::ZeroDuration()), Looked::kNo);
  EXPECT_EQ(LookedAt(kLook - absl::Nanoseconds(1)), Looked::kNo);
  EXPECT_EQ(asked_count_, 0);
}

TEST_F(ReadPatienceTest, ALongOneLooksEachWhile) {
  EXPECT_EQ(LookedAt(kLook), Looked::kYes);
  EXPECT_EQ(LookedAt(kLook + absl::Milliseconds(1)), Looked::kNo);
  EXPECT_EQ(LookedAt(5 * kLook), Looked::kYes) << "one question may take long";
  EXPECT_EQ(LookedAt(6 * kLook - absl::Milliseconds(1)), Looked::kNo);
  EXPECT_EQ(LookedAt(6 * kLook), Looked::kYes);
  EXPECT_EQ(asked_count_, 3);
}

TEST_F(ReadPatienceTest, OnceNobodyWaitsItHasEnded) {
  is_gone_ = true;
  EXPECT_EQ(CodeAt(kLook), absl::StatusCode::kCancelled);
  EXPECT_EQ(CodeAt(kLook + absl::Milliseconds(1)), absl::StatusCode::kCancelled);
  EXPECT_EQ(CodeAt(2 * kTime), absl::StatusCode::kCancelled);
  EXPECT_EQ(asked_count_, 1);
}

TEST_F(ReadPatienceTest, ItsTimeEndsItWhateverElse) {
  EXPECT_EQ(patience_.Left(kBegin + absl::Seconds(4)), absl::Seconds(6));
  EXPECT_EQ(LookedAt(kTime - absl::Nanoseconds(1)), Looked::kYes);
  is_gone_ = true;
  EXPECT_EQ(CodeAt(kTime), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(asked_count_, 1);
}

TEST_F(ReadPatienceTest, WithoutAnEndItNeverLooks) {
  ReadPatience patience;
  patience.Heed([] { return true; });
  const auto looked = patience.Ask(kBegin + absl::Hours(1000));
  ASSERT_TRUE(looked.ok()) << looked.status();
  EXPECT_EQ(*looked, Looked::kNo);
  EXPECT_EQ(patience.Left(kBegin), absl::InfiniteDuration());
}

TEST_F(ReadPatienceTest, WhereNobodySaysItGoesOn) {
  ReadPatience patience(kBegin + kTime, kBegin);
  const auto looked = patience.Ask(kBegin + kLook);
  ASSERT_TRUE(looked.ok()) << looked.status();
  EXPECT_EQ(*looked, Looked::kYes);
}

}  // namespace
}  // namespace stepwell
