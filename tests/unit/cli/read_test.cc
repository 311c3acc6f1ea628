// `stepwell read` of a master that ends its calls before the last sample.
#include <gmock/gmock.h>

#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "tests/unit/cli/outcome.h"
#include "tests/unit/cli/small_master.h"

namespace stepwell::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<double> ValuesOf(const std::string& lines) {
  std::vector<double> values;
  for (const auto& line : absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    values.push_back(nlohmann::json::parse(line)["value"]);
  }
  return values;
}

// `read --limit 0 | less` takes as long as somebody reads.
TEST(ReadTest, GoesOnWhereACallTookItsWholeTime) {
  const SmallMaster master;
  const Outcome all =
      RunWords({"read", "slow-run", "--limit", "0", "--json", "--server", master.address()});
  EXPECT_EQ(all.exit, kExitOk) << all.err;
  EXPECT_EQ(all.err, "") << "a read that took its whole time is no news";
  EXPECT_THAT(ValuesOf(all.out), ElementsAre(0, 1, 2));

  const Outcome some =
      RunWords({"read", "slow-run", "--limit", "1", "--json", "--server", master.address()});
  EXPECT_EQ(some.exit, kExitOk) << some.err;
  EXPECT_THAT(ValuesOf(some.out), ElementsAre(0));
  EXPECT_THAT(some.err, HasSubstr("stopped after 1 sample"));
}

TEST(ReadTest, WhatIsRefusedAtOnceIsNotAskedAgain) {
  const SmallMaster master;
  const Outcome outcome = RunWords({"read", "nobodys", "--server", master.address()});
  EXPECT_EQ(outcome.exit, kExitFailed);
  EXPECT_THAT(outcome.err, HasSubstr("there is no trial 'nobodys'"));
}

}  // namespace
}  // namespace stepwell::cli
