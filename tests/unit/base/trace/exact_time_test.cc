#include "base/trace/exact_time.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/codec_vectors.h"

namespace stepwell {
namespace {

TEST(ExactTime, MicrosecondsBecomeNanosecondsWithoutADouble) {
  const struct {
    const char* number;
    std::optional<std::int64_t> ns;
  } rows[] = {
      {"0", 0},
      {"1", 1000},
      {"-1", -1000},
      {"1732200000000000.125", 1'732'200'000'000'000'125},
      {"9007199254740993.001", 9'007'199'254'740'993'001},
      {"0.0004", 0},
      {"0.0005", 1},
      {"-0.0005", -1},
      {"0.00049999999999999999999999999999999999999999", 0},
      {"12.", 12'000},
      {".5", 500},
      {"1e3", 1'000'000},
      {"1.5E+2", 150'000},
      {"15e-1", 1500},
      {"1e-9", 0},
      {"\"42.5\"", 42'500},
      {"9223372036854775.807", 9'223'372'036'854'775'807},
      {"9223372036854775.808", std::nullopt},
      {"-9223372036854775.807", -9'223'372'036'854'775'807},
      {"1e300", std::nullopt},
      {"0e999999999", 0},
      {"1e99999999999", std::nullopt},
      {"", std::nullopt},
      {"-", std::nullopt},
      {".", std::nullopt},
      {"NaN", std::nullopt},
      {"Infinity", std::nullopt},
      {"1.2.3", std::nullopt},
      {"1 ", std::nullopt},
      {"0x10", std::nullopt},
      {"\"", std::nullopt},
      {"\"\"", std::nullopt},
      {"null", std::nullopt},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(NsOfMicros(row.number), row.ns) << row.number;
  }
  EXPECT_EQ(NsOfMicros(std::string(100'000, '0')), 0);
  EXPECT_EQ(NsOfMicros(std::string(100'000, '9')), std::nullopt);
}

TEST(ExactTime, WhatIsWrittenIsReadBack) {
  std::mt19937_64 random(testing::TestSeed());
  for (int i = 0; i < 20'000; ++i) {
    const auto ns = static_cast<std::int64_t>(random()) >> (random() % 63);
    std::string text;
    AppendMicros(ns, text);
    ASSERT_EQ(NsOfMicros(text), ns == INT64_MIN ? std::nullopt : std::optional(ns)) << text;
  }
}

}  // namespace
}  // namespace stepwell
