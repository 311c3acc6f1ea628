// Lists of series that are remembered are one list, whoever read it, and how many did so at one time.
#include "storage/pg_read_memory.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace stepwell {
namespace {

constexpr TrialId kTrial{7};

PgReadMemory::AllSeries ListOf(int count, std::size_t label_bytes = 1) {
  std::vector<Series> series(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    Series& each = series[static_cast<std::size_t>(i)];
    each.series_no = SeriesNo{i + 1};
    each.definition.key = {"group", "name", {{"label", std::string(label_bytes, 'x')}}};
  }
  return std::make_shared<const std::vector<Series>>(std::move(series));
}

TEST(PgReadMemoryTest, WhoReadsTheSameListBehindOthersGetsTheirs) {
  PgReadMemory memory;
  const auto first = ListOf(3);
  EXPECT_EQ(memory.NoteSeries(kTrial, first, memory.age()), first);
  EXPECT_EQ(memory.NoteSeries(kTrial, ListOf(3), memory.age()), first);
  EXPECT_EQ(memory.SeriesOf(kTrial), first);
  const auto longer = ListOf(4);
  EXPECT_EQ(memory.NoteSeries(kTrial, longer, memory.age()), longer);
  EXPECT_EQ(memory.NoteSeries(kTrial, ListOf(3), memory.age()), nullptr) << "of an older snapshot";
  EXPECT_EQ(memory.SeriesOf(kTrial), longer);
}

TEST(PgReadMemoryTest, WhatIsNotRememberedIsToldApart) {
  PgReadMemory memory({.series_max = 10, .series_bytes_max = 20'000});
  const std::int64_t age = memory.age();
  EXPECT_EQ(memory.NoteSeries(kTrial, ListOf(11), age), nullptr) << "too many";
  EXPECT_EQ(memory.NoteSeries(kTrial, ListOf(2, 10'000), age), nullptr) << "too large";
  memory.Clear();
  EXPECT_EQ(memory.NoteSeries(kTrial, ListOf(2), age), nullptr) << "read before all was forgotten";
  EXPECT_EQ(memory.SeriesOf(kTrial), nullptr);
}

}  // namespace
}  // namespace stepwell
