// stepwell capture, before a master of a few lines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nlohmann/json.hpp"
#include "tests/unit/cli/outcome.h"
#include "tests/unit/cli/small_master.h"

namespace stepwell::cli {
namespace {

using ::testing::HasSubstr;

TEST(CaptureTest, TellsWhatComesAndThenHowEachRankEnded) {
  const SmallMaster master;
  const Outcome outcome =
      RunWords({"capture", "my-run", "--steps", "5", "--server", master.address()});
  EXPECT_EQ(outcome.exit, kExitOk);
  EXPECT_EQ(outcome.err,
            "rank 0: its agent is asked\n"
            "all ranks: batches 120 to 124\n"
            "rank 0: stored as trace 1\n");
  EXPECT_EQ(outcome.out,
            "RANK  STEPS  SPANS  TRACE  OUTCOME\n"
            "   0      5  1,234      1  capture-ep0-ba125-rank0.pftrace\n"
            "\nbatches 120 to 124 of 1 rank: 'stepwell trace open my-run' shows them.\n");
}

TEST(CaptureTest, ARankThatGaveNoneMakesItAFailure) {
  const SmallMaster master;
  const Outcome outcome = RunWords({"capture", "my-run", "--ranks", "0,3", "--steps", "1", "--json",
                                    "--server", master.address()});
  EXPECT_EQ(outcome.exit, kExitFailed);
  EXPECT_THAT(outcome.err, HasSubstr("rank 3: UNKNOWN_RANK: the trial has no such rank\n"));
  EXPECT_THAT(outcome.err, HasSubstr("all ranks: batch 120\n"));
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json.at("ranks").at(0).at("state"), "stored");
  EXPECT_EQ(json.at("ranks").at(1).at("reason"), "UNKNOWN_RANK");
  EXPECT_EQ(json.at("is_over"), true);
}

TEST(CaptureTest, ARankWithoutANativeProfileSaysWhyAndMakesItAFailure) {
  const SmallMaster master;
  const Outcome outcome = RunWords({"capture", "my-run", "--native", "--server", master.address()});
  EXPECT_EQ(outcome.exit, kExitFailed);
  EXPECT_THAT(outcome.err, HasSubstr("rank 0: stored as trace 1\n"));
  EXPECT_THAT(outcome.err, HasSubstr("rank 0, torch.profiler: NO_PROFILER: its program has not "
                                     "imported torch\n"));
  EXPECT_THAT(outcome.out,
              HasSubstr("   0      5  1,234      1  capture-ep0-ba125-rank0.pftrace\n"
                        "   0                       torch.profiler: NO_PROFILER: its program has "
                        "not imported torch\n"));
}

TEST(CaptureTest, RanksAreNumbersAndRangesEachOnce) {
  const SmallMaster master;
  const auto ask = [&](const std::string& ranks) {
    return RunWords({"capture", "my-run", "--ranks", ranks, "--server", master.address()});
  };
  // Rank 0 and five others.
  EXPECT_THAT(ask("0,3-5,9,11").err, HasSubstr("rank 5: UNKNOWN_RANK"));
  for (const char* wrong : {"x", "3-1", "0,0", "1-3,2", "0-256", "1,,2", "1-", "4294967296"}) {
    const Outcome outcome = ask(wrong);
    EXPECT_EQ(outcome.exit, kExitUsage) << wrong;
    EXPECT_THAT(outcome.err, HasSubstr("allowed: numbers from 0 and ranges")) << wrong;
  }
  EXPECT_EQ(RunWords({"capture", "my-run", "--steps", "1001"}).exit, kExitUsage);
  EXPECT_EQ(RunWords({"capture", "my-run", "--timeout", "11m"}).exit, kExitUsage);
}

}  // namespace
}  // namespace stepwell::cli
