#include "client/demo/options.h"

#include <gtest/gtest.h>

namespace stepwell::demo {
namespace {

ParsedOptions Parse(const std::vector<std::string>& arguments) { return ParseOptions(arguments); }

TEST(DemoOptionsTest, TakesValuesInBothForms) {
  const ParsedOptions parsed = Parse({"--steps", "12", "--ranks=3", "--slow-loader=2.5", "--check",
                                      "--held-out", "a", "--held-out=b"});
  ASSERT_EQ(parsed.error, "");
  EXPECT_EQ(parsed.options.steps, 12);
  EXPECT_EQ(parsed.options.ranks, 3);
  EXPECT_EQ(parsed.options.slow_loader_ms, 2.5);
  EXPECT_TRUE(parsed.options.is_checked);
  EXPECT_FALSE(parsed.options.is_json);
  EXPECT_EQ(parsed.options.held_outs, (std::vector<std::string>{"a", "b"}));
}

TEST(DemoOptionsTest, StepsAloneHaveNoLimitOfTime) {
  EXPECT_EQ(Parse({}).options.seconds, 20);
  EXPECT_EQ(Parse({"--steps", "5"}).options.seconds, 0);
  EXPECT_EQ(Parse({"--steps", "5", "--seconds", "7"}).options.seconds, 7);
}

TEST(DemoOptionsTest, SaysWhatIsWrong) {
  const struct {
    std::vector<std::string> arguments;
    std::string error;
  } rows[] = {
      {{"--bogus"}, "unknown argument '--bogus'; see --help"},
      {{"file"}, "unknown argument 'file'; see --help"},
      {{"--steps"}, "--steps needs a value"},
      {{"--steps", "many"}, "--steps: 'many' is not a count of 1 ... 1000000000"},
      {{"--steps", "0"}, "--steps: '0' is not a count of 1 ... 1000000000"},
      {{"--steps", "12x"}, "--steps: '12x' is not a count of 1 ... 1000000000"},
      {{"--ranks=65"}, "--ranks: '65' is not a count of 1 ... 64"},
      {{"--seconds", "nan"}, "--seconds: 'nan' is not a number of 0.1 ... 1000000"},
      {{"--slow-loader", "-1"},
       "--slow-loader: '-1' is not a number of milliseconds of 0 ... 60000"},
      {{"--data="}, "--data: '' is empty"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.arguments[0]);
    EXPECT_EQ(Parse(row.arguments).error, row.error);
  }
}

}  // namespace
}  // namespace stepwell::demo
