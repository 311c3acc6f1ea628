// Invariant: all shares together never exceed the limit; what is named is taken as named, or refused with what is allowed.
#include "server/memory_shares.h"

#include <gtest/gtest.h>

#include <string>

namespace stepwell {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
using Part = MemoryShares::Part;

void ExpectFits(const MemoryShares& shares, const MemoryAsked& asked) {
  EXPECT_LE(shares.Sum(), asked.memory_bytes);
  for (std::size_t i = 0; i < MemoryShares::kPartCount; ++i) EXPECT_GT(shares.bytes[i], 0) << i;
  EXPECT_GE(shares.window_bytes, 64 << 10);
  EXPECT_LE(shares.window_bytes * asked.streams_max, shares.of(MemoryShares::kWindows));
  EXPECT_LT(shares.fold_bytes, shares.credit_bytes());
  EXPECT_LT(shares.credit_bytes(), shares.of(MemoryShares::kUnfolded));
}

TEST(MemorySharesTest, OneGiBKeepsWhatEachPartHad) {
  const auto shares = DivideMemory({});
  ASSERT_TRUE(shares.ok());
  ExpectFits(*shares, {});
  EXPECT_EQ(shares->Sum(), 1024 * kMiB) << "all of it is given out";
  EXPECT_EQ(shares->of(MemoryShares::kQueue), 64 * kMiB);
  EXPECT_EQ(shares->fold_bytes, 32 * kMiB);
  EXPECT_EQ(shares->of(MemoryShares::kLatest), 32 * kMiB);
  EXPECT_EQ(shares->of(MemoryShares::kFollowed), 64 * kMiB);
  EXPECT_EQ(shares->of(MemoryShares::kCharts), 240 * kMiB);
  EXPECT_EQ(shares->of(MemoryShares::kLists), 32 * kMiB);
  EXPECT_EQ(shares->window_bytes, 256 << 10);
}

TEST(MemorySharesTest, WhatIsNamedIsTakenAsNamedAndTheRestFits) {
  struct Row {
    const char* name;
    MemoryAsked asked;
    Part part = MemoryShares::kQueue;
    std::int64_t bytes = 0;
  };
  for (const Row& row : {
           Row{"the least", {.memory_bytes = 512 * kMiB}, MemoryShares::kQueue, 32 * kMiB},
           Row{"more", {.memory_bytes = 768 * kMiB}, MemoryShares::kQueue, 48 * kMiB},
           Row{"much", {.memory_bytes = 65'536 * kMiB}, MemoryShares::kUnfolded, 512 * kMiB},
           Row{"a small queue",
               {.memory_bytes = 512 * kMiB, .queue_bytes = kMiB},
               MemoryShares::kQueue,
               kMiB},
           Row{"a large queue", {.queue_bytes = 500 * kMiB}, MemoryShares::kQueue, 500 * kMiB},
           Row{"as large as it may be",
               {.queue_bytes = 721 * kMiB},
               MemoryShares::kQueue,
               721 * kMiB},
           Row{"folds begin late", {.fold_bytes = 256 * kMiB}, MemoryShares::kUnfolded, 280 * kMiB},
           Row{"newest values",
               {.memory_bytes = 512 * kMiB, .latest_bytes = 100 * kMiB},
               MemoryShares::kLatest,
               100 * kMiB},
           Row{"followed", {.follow_bytes = 65'536}, MemoryShares::kFollowed, 65'536},
           Row{"one stream", {.streams_max = 1}, MemoryShares::kQueue, 64 * kMiB},
           Row{"many streams", {.streams_max = 4096}, MemoryShares::kWindows, 256 * kMiB},
       }) {
    SCOPED_TRACE(row.name);
    const auto shares = DivideMemory(row.asked);
    ASSERT_TRUE(shares.ok()) << shares.status();
    ExpectFits(*shares, row.asked);
    if (row.part == MemoryShares::kUnfolded || row.part == MemoryShares::kWindows) {
      EXPECT_GE(shares->of(row.part), row.bytes);
    } else {
      EXPECT_EQ(shares->of(row.part), row.bytes);
    }
    if (row.asked.fold_bytes > 0) {
      EXPECT_EQ(shares->fold_bytes, row.asked.fold_bytes);
    }
  }
}

TEST(MemorySharesTest, EachLimitIsDividedAndMoreGivesNoPartLess) {
  MemoryShares before;
  for (std::int64_t mib = 512; mib <= 8192; mib += 7) {
    const MemoryAsked asked{.memory_bytes = mib * kMiB + 1};
    const auto shares = DivideMemory(asked);
    ASSERT_TRUE(shares.ok()) << mib;
    ExpectFits(*shares, asked);
    for (std::size_t i = 0; i < MemoryShares::kPartCount; ++i) {
      EXPECT_GE(shares->bytes[i], before.bytes[i]) << "part " << i << " of " << mib << " MiB";
    }
    before = *shares;
  }
}

TEST(MemorySharesTest, WhatDoesNotFitIsRefusedWithWhatIsAllowed) {
  struct Row {
    MemoryAsked asked;
    const char* text;
    std::int64_t allowed;
  };
  for (const Row& row : {
           Row{{.memory_bytes = 512 * kMiB, .queue_bytes = 256 * kMiB},
               "memory-bytes is 512MiB, allowed are at least 559MiB beside queue-bytes 256MiB, "
               "streams-max 256",
               559},
           Row{{.queue_bytes = 900 * kMiB, .fold_bytes = 64 * kMiB, .follow_bytes = 100 * kMiB},
               "memory-bytes is 1024MiB, allowed are at least 1389MiB beside queue-bytes 900MiB, "
               "fold-bytes 64MiB, follow-bytes 100MiB, streams-max 256",
               1389},
           Row{{.memory_bytes = 512 * kMiB, .streams_max = 4096},
               "memory-bytes is 512MiB, allowed are at least 911MiB beside streams-max 4096",
               911},
       }) {
    SCOPED_TRACE(row.text);
    EXPECT_EQ(DivideMemory(row.asked).status(), absl::InvalidArgumentError(row.text));
    MemoryAsked more = row.asked;
    more.memory_bytes = row.allowed * kMiB;
    EXPECT_TRUE(DivideMemory(more).ok());
    more.memory_bytes -= kMiB;
    EXPECT_FALSE(DivideMemory(more).ok()) << "less would have been allowed";
  }
}

}  // namespace
}  // namespace stepwell
