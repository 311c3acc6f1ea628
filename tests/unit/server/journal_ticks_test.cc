#include "server/journal_ticks.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "server/limits.h"
#include "tests/unit/server/test_seed.h"

namespace stepwell {
namespace {

using Limits = std::numeric_limits<double>;

std::vector<std::uint64_t> BitsOf(const std::vector<double>& values) {
  std::vector<std::uint64_t> bits;
  for (const double value : values) bits.push_back(std::bit_cast<std::uint64_t>(value));
  return bits;
}

void ExpectComesBack(const std::vector<TickTable>& tables) {
  std::string body;
  AppendJournalTicks(tables, body);
  DecodedChunk decoded;
  ASSERT_TRUE(DecodeJournalTicks(body, decoded));
  ASSERT_EQ(decoded.tables.size(), tables.size());
  std::int64_t sample_count = 0;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    EXPECT_EQ(decoded.tables[t].tick_group, tables[t].tick_group);
    EXPECT_EQ(decoded.tables[t].times_us, tables[t].times_us);
    EXPECT_EQ(decoded.tables[t].batches, tables[t].batches);
    ASSERT_EQ(decoded.tables[t].columns.size(), tables[t].columns.size());
    for (std::size_t c = 0; c < tables[t].columns.size(); ++c) {
      const TickColumn& column = tables[t].columns[c];
      EXPECT_EQ(decoded.tables[t].columns[c].series_no, column.series_no);
      EXPECT_EQ(decoded.tables[t].columns[c].presence, column.presence);
      EXPECT_EQ(BitsOf(decoded.tables[t].columns[c].values), BitsOf(column.values));
      sample_count += static_cast<std::int64_t>(column.values.size());
    }
  }
  EXPECT_EQ(decoded.sample_count, sample_count);
  for (std::size_t cut = 0; cut < body.size(); cut += 1 + body.size() / 64) {
    DecodedChunk part;
    DecodeJournalTicks({body.data(), cut}, part);  // must not read beyond
  }
}

TickTable OneColumn(std::vector<double> values) {
  TickTable table;
  table.tick_group = 1;
  for (std::size_t i = 0; i < values.size(); ++i) {
    table.times_us.push_back(static_cast<std::int64_t>(1'700'000'000'000'000 + i * 1000));
    table.batches.push_back(static_cast<std::int32_t>(i));
  }
  table.columns.push_back({.series_no = SeriesNo{3}, .values = std::move(values), .presence = {}});
  return table;
}

TEST(JournalTicksTest, EveryKindOfValueComesBackBitForBit) {
  const double payload_nan = std::bit_cast<double>(std::uint64_t{0x7ff8dead0000beef});
  const struct {
    std::string name;
    std::vector<double> values;
  } rows[] = {
      {"one", {0}},
      {"constant", std::vector<double>(20, -3.25)},
      {"tenths", {0.1, 99.9, -7, 0, 12.3, 0.1, 0.2, 0.3, 0.4, 0.5}},
      {"bytes of memory", {85899345920, 85897248768, 0}},
      {"nanoseconds in seconds", {0.012345678, 1.5, 3.000000001}},
      {"wide integers", {9007199254740992, -9007199254740992, 1}},
      {"just below what is rounded quickly",
       {2251799813685247, -2251799813685247, 2251799813685248, 1, 2, 3, 4, 5, 6}},
      {"powers of two", {std::ldexp(1.0, -40), std::ldexp(3.0, -20), 1}},
      {"tiny powers of two", {std::ldexp(1.0, -1000), std::ldexp(1.0, -1001)}},
      {"minus zero", {0, -0.0, 1, 1, 1, 1, 1, 1, 1}},
      {"not a number", {1, payload_nan, Limits::quiet_NaN(), -Limits::quiet_NaN()}},
      {"infinities", {Limits::infinity(), -Limits::infinity(), 1}},
      {"denormals", {Limits::denorm_min(), -5 * Limits::denorm_min()}},
      {"extremes", {Limits::max(), Limits::lowest(), Limits::min()}},
      {"full entropy", {M_PI, M_E, std::sqrt(2.0), 1e300, 1e-300}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    ExpectComesBack({OneColumn(row.values)});
  }
}

TEST(JournalTicksTest, TimesAndBatchesOfAnyKindComeBack) {
  TickTable table = OneColumn({1, 2, 3});
  table.times_us = {std::numeric_limits<std::int64_t>::max(), kTimeUsMin, -1};
  table.batches = {std::numeric_limits<std::int32_t>::max(), -1, 0};
  ExpectComesBack({table, OneColumn({4}), table});
  ExpectComesBack({});
}

TEST(JournalTicksTest, RandomTablesComeBack) {
  std::mt19937_64 random(TestSeed());
  const auto below = [&](std::uint64_t end) { return random() % end; };
  for (int round = 0; round < 500; ++round) {
    std::vector<TickTable> tables(below(4));
    for (TickTable& table : tables) {
      table.tick_group = static_cast<std::uint32_t>(random());
      const std::size_t tick_count = 1 + below(70);
      const std::uint64_t jitter = below(2) * below(1 << 20);
      for (std::size_t i = 0; i < tick_count; ++i) {
        table.times_us.push_back(
            static_cast<std::int64_t>(1'000'000 * i + (jitter > 0 ? below(jitter) : 0)));
        table.batches.push_back(below(3) == 0 ? -1 : static_cast<std::int32_t>(i / 3));
      }
      for (std::uint64_t c = below(6); c > 0; --c) {
        TickColumn& column = table.columns.emplace_back();
        column.series_no = static_cast<SeriesNo>(below(1U << 31));
        std::size_t count = tick_count;
        if (below(3) == 0) {
          column.presence.assign(tick_count, 0);
          for (auto& present : column.presence) {
            present = static_cast<std::uint8_t>(below(2));
            count -= present == 0 ? 1 : 0;
          }
        }
        const double divisor = std::pow(10.0, static_cast<double>(below(12)));
        const std::uint64_t range = std::uint64_t{1} << (1 + below(50));
        for (std::size_t i = 0; i < count; ++i) {
          column.values.push_back(below(300) == 0 ? std::bit_cast<double>(random())
                                                  : static_cast<double>(below(range)) / divisor);
        }
      }
    }
    ExpectComesBack(tables);
  }
}

TEST(JournalTicksTest, GaugesTakeLittleMoreThanAByteEach) {
  std::mt19937_64 random(TestSeed());
  TickTable table = OneColumn(std::vector<double>(40, 0.0));
  table.columns.clear();
  for (int c = 0; c < 25; ++c) {
    std::int64_t tenths = 500;
    TickColumn& column = table.columns.emplace_back();
    column.series_no = static_cast<SeriesNo>(c + 1);
    for (int i = 0; i < 40; ++i) {
      tenths += static_cast<std::int64_t>(random() % 5) - 2;
      column.values.push_back(static_cast<double>(tenths) / 10);
    }
  }
  std::string body;
  AppendJournalTicks({table}, body);
  EXPECT_LT(body.size(), 1200U);
}

TEST(JournalTicksTest, NoMoreThanAChunkMayHoldIsGiven) {
  // Constants take no bytes: a few bytes must not become any number of samples.
  const auto ticks = static_cast<std::size_t>(kChunkSamplesMax);
  TickTable table = OneColumn(std::vector<double>(ticks, 1.0));
  table.batches.assign(ticks, -1);
  std::string body;
  AppendJournalTicks({table}, body);
  EXPECT_LT(body.size(), 64U);
  DecodedChunk whole;
  EXPECT_TRUE(DecodeJournalTicks(body, whole));
  DecodedChunk twice;
  EXPECT_FALSE(DecodeJournalTicks(body + body, twice));
  table.columns.push_back(table.columns[0]);
  body.clear();
  AppendJournalTicks({table}, body);
  DecodedChunk two_columns;
  EXPECT_FALSE(DecodeJournalTicks(body, two_columns));
}

}  // namespace
}  // namespace stepwell
