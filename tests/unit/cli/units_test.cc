#include "client/cli/units.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "client/cli/words.h"

namespace stepwell::cli {
namespace {

TEST(UnitsTest, Counts) {
  EXPECT_EQ(CountText(0), "0");
  EXPECT_EQ(CountText(999), "999");
  EXPECT_EQ(CountText(1000), "1,000");
  EXPECT_EQ(CountText(-1234567), "-1,234,567");
  EXPECT_EQ(CountText(INT64_MIN), "-9,223,372,036,854,775,808");
}

TEST(UnitsTest, SecondsReadAsPeopleSayThem) {
  const std::pair<double, const char*> rows[] = {
      {0, "0 s"},
      {0.0344, "34.4 ms"},
      {4.2e-6, "4.20 µs"},
      {3e-9, "3.00 ns"},
      {1.31, "1.31 s"},
      {91.44, "91.4 s"},
      {599, "599 s"},
      {7200, "2.00 h"},
      {0.9999, "1.00 s"},
      {0.09996, "100 ms"},
      {-0.002, "-2.00 ms"},
      {1e-12, "0.00 ns"},
      {86400 * 3, "3.00 d"},
  };
  for (const auto& [seconds, text] : rows) EXPECT_EQ(SecondsText(seconds), text) << seconds;
}

TEST(UnitsTest, ValuesCarryTheirUnit) {
  EXPECT_EQ(ValueText(5'368'709'120, "bytes"), "5.00 GiB");
  EXPECT_EQ(ValueText(0, "bytes"), "0 B");
  EXPECT_EQ(ValueText(-0.0, "bytes/s"), "0 B/s");
  EXPECT_EQ(ValueText(1023.99, "bytes"), "1.00 KiB");
  EXPECT_EQ(ValueText(88.42, "percent"), "88.4 %");
  EXPECT_EQ(ValueText(1200, "1"), "1,200");
  EXPECT_EQ(ValueText(1.8731, ""), "1.873");
  EXPECT_EQ(ValueText(13'440.5, "tokens/s"), "13,441 tokens/s");
  EXPECT_EQ(ValueText(8.8, "1/s"), "8.8 /s");
  EXPECT_EQ(ValueText(std::nan(""), "bytes"), "nan B");
  EXPECT_EQ(ValueText(std::numeric_limits<double>::infinity(), "1"), "inf");
}

std::int64_t Tenths(const std::vector<std::string>& texts) {
  std::int64_t sum = 0;
  for (const std::string& text : texts) sum += std::llround(std::stod(text) * 10);
  return sum;
}

TEST(UnitsTest, PercentsAddUpToAHundred) {
  EXPECT_EQ(PercentTexts({1.0 / 3, 1.0 / 3, 1.0 / 3}),
            (std::vector<std::string>{"33.4 %", "33.3 %", "33.3 %"}));
  EXPECT_EQ(PercentTexts({1.0005, -0.0005}), (std::vector<std::string>{"100.1 %", "-0.1 %"}));
  std::mt19937_64 random(4711);
  for (int round = 0; round < 500; ++round) {
    std::vector<double> shares(1 + random() % 20);
    for (double& share : shares) share = static_cast<double>(random() % 1000);
    const double total = std::accumulate(shares.begin(), shares.end(), 0.0);
    if (total == 0) continue;
    for (double& share : shares) share /= total;
    ASSERT_EQ(Tenths(PercentTexts(shares)), 1000);
  }
}

TEST(UnitsTest, BarsGrowInEighths) {
  EXPECT_EQ(BarText(0, 4), "");
  EXPECT_EQ(BarText(1, 4), "████");
  EXPECT_EQ(BarText(0.5, 1), "▌");
  EXPECT_EQ(BarText(7, 2), "██");
  EXPECT_EQ(BarText(std::nan(""), 2), "");
}

TEST(UnitsTest, Times) {
  EXPECT_EQ(TimeText(0), "-");
  EXPECT_EQ(TimeText(1'763'632'882'123'456), "2025-11-20 10:01:22 UTC");
  EXPECT_EQ(IsoTimeText(1'763'632'882'123'456), "2025-11-20T10:01:22.123456Z");
}

TEST(WordsTest, TimesAreRfc3339OrHowLongAgo) {
  EXPECT_EQ(*ParseTime("from", "2025-11-20T10:01:22.5Z", 0), 1'763'632'882'500'000);
  for (const char* same : {"2025-11-20", "2025-11-20T00:00", "2025-11-20 00:00:00"}) {
    EXPECT_EQ(*ParseTime("from", same, 0), 1'763'596'800'000'000) << same;
  }
  EXPECT_EQ(*ParseTime("from", "10m", 1'000'000'000), 400'000'000);
  const auto wrong = ParseTime("from", "yesterday", 0);
  EXPECT_EQ(wrong.status().message(),
            "--from is 'yesterday'; allowed: a time such as 2026-11-20T10:00:00Z, a day such as "
            "2026-11-20, or how long ago, such as 10m");
}

}  // namespace
}  // namespace stepwell::cli
