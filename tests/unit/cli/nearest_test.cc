#include "client/cli/nearest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepwell::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(NearestTest, FindsWhatASlipAwayIs) {
  const std::set<std::string> names = {"accuracy", "gpu",  "loss",       "gpu_power",
                                       "gpu_util", "step", "throughput", "cpu"};
  EXPECT_THAT(NearestNames("lss", names), ElementsAre("loss"));
  EXPECT_THAT(NearestNames("losss", names), ElementsAre("loss"));
  EXPECT_THAT(NearestNames("gpux", names), ElementsAre("gpu"));
  EXPECT_THAT(NearestNames("gup", names), ElementsAre("gpu"));
  EXPECT_THAT(NearestNames("gpu_powr", names), ElementsAre("gpu_power"));
  EXPECT_THAT(NearestNames("accurcay", names), ElementsAre("accuracy"));
  EXPECT_THAT(NearestNames("memory", names), IsEmpty());
  EXPECT_THAT(NearestNames("", names), IsEmpty());
  EXPECT_THAT(NearestNames(std::string(1000, 'x'), names), IsEmpty());
}

TEST(NearestTest, TheNearestComeFirstAndFew) {
  const std::set<std::string> names = {"abcdef", "abcdeg", "abcxyf", "abcdefg", "abcdex"};
  EXPECT_THAT(NearestNames("abcdef", names), ElementsAre("abcdef", "abcdefg", "abcdeg"));
}

}  // namespace
}  // namespace stepwell::cli
