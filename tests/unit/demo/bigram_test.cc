#include "client/demo/bigram.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stepwell::demo {
namespace {

TEST(BigramTest, IsTheEntropyOfItsCounts) {
  Bigram bigram(3);
  bigram.Count(std::vector<int>{0, 1, 0, 1, 0, 2});  // after 0: 1 twice, 2 once; after 1: 0 twice
  const std::vector<int> text = {0, 1, 0, 2};
  const std::vector<std::int64_t> places = {1, 2, 3};
  EXPECT_NEAR(bigram.Loss(text, places, 0),
              -(std::log(2.0 / 3) + std::log(1.0) + std::log(1.0 / 3)) / 3, 1e-12);
  EXPECT_NEAR(bigram.Loss(text, places, 1),
              -(std::log(3.0 / 6) + std::log(3.0 / 5) + std::log(2.0 / 6)) / 3, 1e-12);
}

TEST(BigramTest, KnowsNothingWithoutText) {
  const Bigram bigram(4);
  EXPECT_NEAR(bigram.Loss(std::vector<int>{0, 3}, std::vector<std::int64_t>{1}, 1), std::log(4.0),
              1e-12);
}

TEST(BigramTest, TextsDoNotTouch) {
  Bigram bigram(2);
  bigram.Count(std::vector<int>{0, 0});
  bigram.Count(std::vector<int>{1, 1});
  EXPECT_NEAR(bigram.Loss(std::vector<int>{0, 0, 1, 1}, std::vector<std::int64_t>{1, 3}, 0), 0,
              1e-12);
}

}  // namespace
}  // namespace stepwell::demo
