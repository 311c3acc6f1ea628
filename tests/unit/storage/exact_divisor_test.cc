#include "storage/exact_divisor.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/codec_vectors.h"

namespace stepwell {
namespace {

TEST(ExactDivisorTest, SaysWhatDividingSays) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 100'000; ++round) {
    std::uint64_t divisor = random() >> (random() % 64);
    if (round < 64) divisor = std::uint64_t{1} << round;
    if (divisor == 0) continue;
    const ExactDivisor by(divisor);
    const std::uint64_t x = random() >> (random() % 64);
    ASSERT_EQ(by.Divides(x), x % divisor == 0) << x << " by " << divisor;
    const std::uint64_t multiple = x - x % divisor;
    ASSERT_TRUE(by.Divides(multiple)) << multiple << " by " << divisor;
    ASSERT_EQ(by.Quotient(multiple), multiple / divisor) << multiple << " by " << divisor;
    // Of both signs.
    if (divisor > std::uint64_t{INT64_MAX}) continue;
    const auto times = static_cast<std::int64_t>(x / 2 / divisor);
    const std::int64_t product = times * static_cast<std::int64_t>(divisor);
    ASSERT_EQ(by.Quotient(product), times) << product << " by " << divisor;
    ASSERT_EQ(by.Quotient(-product), -times) << product << " by " << divisor;
  }
}

}  // namespace
}  // namespace stepwell
