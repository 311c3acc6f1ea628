// Invariant: what is owed is due once nothing more has come for a second, at the latest ten seconds after it was worth it, and
// not twice within ten seconds; a little is never due.
#include "server/memory_debt.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

class MemoryDebtTest : public ::testing::Test {
 protected:
  MemoryDebt debt_;
  SteadyTime now_ = SteadyTime::Now();
};

TEST_F(MemoryDebtTest, ALittleIsNeverDue) {
  debt_.Owe(MemoryDebt::kBytesMin - 1, now_);
  EXPECT_EQ(debt_.due(), SteadyTime::InfiniteFuture());
  EXPECT_FALSE(debt_.IsDue(now_ + absl::Hours(1)));
  debt_.Owe(1, now_);
  EXPECT_TRUE(debt_.IsDue(now_ + absl::Hours(1)));
}

TEST_F(MemoryDebtTest, ItIsDueOnceItIsCalm) {
  debt_.Owe(MemoryDebt::kBytesMin, now_);
  EXPECT_FALSE(debt_.IsDue(now_));
  now_ += absl::Milliseconds(900);
  debt_.Owe(1, now_);
  EXPECT_EQ(debt_.due(), now_ + MemoryDebt::kCalm);
  now_ += MemoryDebt::kCalm;
  EXPECT_TRUE(debt_.IsDue(now_));
  debt_.Pay(now_);
  EXPECT_FALSE(debt_.IsDue(now_ + absl::Hours(1))) << "paid";
}

TEST_F(MemoryDebtTest, WhereItIsNeverCalmItIsDueAllTheSame) {
  int paid = 0;
  for (int i = 0; i < 1000; ++i, now_ += absl::Milliseconds(100)) {
    debt_.Owe(MemoryDebt::kBytesMin, now_);
    if (!debt_.IsDue(now_)) continue;
    debt_.Pay(now_);
    ++paid;
  }
  // Each ten seconds of a hundred.
  EXPECT_GE(paid, 8);
  EXPECT_LE(paid, 10);
}

}  // namespace
}  // namespace stepwell
