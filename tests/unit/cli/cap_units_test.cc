// Caps as people write them: what is taken, what is refused and how, and that what is printed can be
// given again.
#include "client/cli/cap_units.h"

#include <gtest/gtest.h>

#include <random>

#include "absl/strings/match.h"
#include "absl/time/clock.h"

namespace stepwell::cli {
namespace {

using Parse = absl::StatusOr<std::int64_t> (*)(std::string_view, std::string_view);

TEST(CapUnitsTest, TakesWhatPeopleWrite) {
  struct Row {
    Parse parse;
    const char* text;
    std::int64_t value;
  };
  const Row rows[] = {
      {ParseAge, "30d", 2'592'000},
      {ParseAge, "2y", 63'072'000},
      {ParseAge, "1w", 604'800},
      {ParseAge, "1h30m", 5400},
      {ParseAge, "1.5h", 5400},
      {ParseAge, "5m", 300},
      {ParseAge, "1s", 1},
      {ParseAge, "none", 0},
      {ParseBytes, "50GiB", INT64_C(50) << 30},
      {ParseBytes, "1.5TB", INT64_C(1'500'000'000'000)},
      {ParseBytes, "4096", 4096},
      {ParseBytes, "1B", 1},
      {ParseBytes, "8.5PiB", INT64_C(17) << 49},
      {ParseBytes, "100.0PiB", INT64_C(100) << 50},
      {ParseBytes, "9007199254740993", INT64_C(9'007'199'254'740'993)},  // no double is it
      {ParseBytes, "none", 0},
      {ParseSamples, "1000000", 1'000'000},
      {ParseSamples, "1M", 1'000'000},
      {ParseSamples, "2.5k", 2500},
      {ParseSamples, "none", 0},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.text);
    const auto value = row.parse("--cap", row.text);
    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_EQ(*value, row.value);
  }
}

TEST(CapUnitsTest, RefusesTheRestAndSaysWhatIsAllowed) {
  for (const char* text : {"", "30", "d", "-1d", "0d", "1.5s", "1d1d", "1h1d", "30 d", "1e3d",
                           "nan", "99999999999999999999y", "1..5h", ".5h", "0"}) {
    const auto value = ParseAge("--raw-age", text);
    ASSERT_FALSE(value.ok()) << text << " is " << *value;
    EXPECT_EQ(value.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(value.status().message(),
              "--raw-age is '" + std::string(text) +
                  "'; allowed: an age such as 30d, 2y or 1h30m (y, w, d, h, "
                  "m, s), or none");
  }
  for (const char* text : {"", "0", "GiB", "1gib", "1.5B", "1GiB1B", "-1", "9999PiB"}) {
    EXPECT_FALSE(ParseBytes("--bytes", text).ok()) << text;
  }
  for (const char* text : {"", "0", "k", "1m", "0.5", "1M1", "-5"}) {
    EXPECT_FALSE(ParseSamples("--samples", text).ok()) << text;
  }
}

TEST(CapUnitsTest, PrintsWhatPeopleRead) {
  EXPECT_EQ(AgeText(0), "none");
  EXPECT_EQ(AgeText(2'592'000), "30d");
  EXPECT_EQ(AgeText(5400), "1h30m");
  EXPECT_EQ(AgeText(63'072'000), "2y");
  EXPECT_EQ(AgeText(365 * 86'400 + 1), "1y1s");
  EXPECT_EQ(BytesText(0), "none");
  EXPECT_EQ(BytesText(INT64_C(50) << 30), "50GiB");
  EXPECT_EQ(BytesText(INT64_C(1'500'000'000'000)), "1500GB");
  EXPECT_EQ(BytesText(1001), "1001B");
  EXPECT_EQ(SamplesText(1'000'000), "1000000");
}

TEST(CapUnitsTest, WhatIsPrintedCanBeGivenAgain) {
  const auto seed = static_cast<std::uint32_t>(absl::ToUnixMicros(absl::Now()));
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  // Beyond 2^53 a double in between would not hold each number.
  std::uniform_int_distribution<int> bits(0, 52);
  for (int i = 0; i < 10'000; ++i) {
    const std::int64_t value = (INT64_C(1) << bits(random)) + static_cast<int>(random() % 2);
    EXPECT_EQ(*ParseAge("", AgeText(value)), value);
    EXPECT_EQ(*ParseBytes("", BytesText(value)), value);
    EXPECT_EQ(*ParseSamples("", SamplesText(value)), value);
  }
}

TEST(CapUnitsTest, NamesEachFieldOfTheContract) {
  const auto* caps = v1::Caps::descriptor();
  ASSERT_EQ(static_cast<int>(CapOptions().size()), caps->field_count());
  for (int i = 0; i < caps->field_count(); ++i) {
    const CapOption& option = CapOptions()[static_cast<std::size_t>(i)];
    EXPECT_EQ(option.field, caps->field(i)->name());
    v1::Caps set;
    (set.*option.set)(7);
    EXPECT_TRUE((set.*option.has)());
    EXPECT_EQ((set.*option.get)(), 7);
    EXPECT_EQ(set.GetReflection()->GetInt64(set, caps->field(i)), 7);
    EXPECT_EQ(FindCap(option.field), &option);
  }
  EXPECT_EQ(FindCap("nonsense"), nullptr);
}

}  // namespace
}  // namespace stepwell::cli
