#include "server/chunk_scratch.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "server/chunk_check.h"
#include "server/journal_codec.h"
#include "tests/unit/server/chunk_maker.h"
#include "tests/unit/server/test_seed.h"

namespace stepwell {
namespace {

// What is kept of a chunk: its entry says all that was decoded.
std::string EntryOf(const pb::Chunk& chunk, ChunkScratch& scratch) {
  const ChunkContent content = CheckChunkContent(chunk, MakeRefs(), WriterNo{1}, scratch);
  std::string entry;
  AppendJournalEntry({.first_sequence = chunk.sequence(),
                      .last_sequence = chunk.sequence(),
                      .attempt = 1,
                      .sealed_time_us = chunk.sealed_time_us(),
                      .has_body = !content.whole_rejected},
                     content.decoded.tables, entry, scratch.journal());
  return entry;
}

// Two columns of `tick_count` values each, of one kind: integers under a divisor, or of full entropy.
pb::Chunk MakeRandomChunk(std::mt19937_64& random, std::size_t tick_count) {
  const bool has_divisor = random() % 2 == 0;
  std::vector<double> values;
  for (std::size_t i = 0; i < tick_count; ++i) {
    const auto integer = static_cast<double>(random() % 100'000);
    values.push_back(has_divisor ? integer / 10 : 1 / (integer + 1.5));
  }
  pb::ChunkBody body = MakeBody(1, values);
  pb::Column& column = *body.mutable_tables(0)->add_columns();
  column = body.tables(0).columns(0);
  column.set_ref(2);
  return MakeChunk(1 + random() % 1000, body);
}

TEST(ChunkScratchTest, AChunkLeavesNothingToTheNext) {
  std::mt19937_64 random(TestSeed());
  ChunkScratch kept;
  for (int round = 0; round < 300; ++round) {
    // Small ones behind large ones, and those that no longer fit; now and then one that is refused.
    const std::size_t tick_count = std::size_t{1} << random() % 16;
    const pb::Chunk chunk =
        round % 7 == 6 ? MakeChunk(7, MakeBody(99, {1, 2})) : MakeRandomChunk(random, tick_count);
    ChunkScratch fresh;
    EXPECT_EQ(EntryOf(chunk, kept), EntryOf(chunk, fresh)) << "round " << round;
    if (random() % 2 == 0) kept.KeepLittle();
  }
}

TEST(ChunkScratchTest, LittleIsKeptOfALargeChunk) {
  std::mt19937_64 random(TestSeed());
  ChunkScratch scratch;
  constexpr std::size_t kManyTicks = 30'000;
  constexpr std::size_t kLittle = 64 << 10;
  EntryOf(MakeRandomChunk(random, kManyTicks), scratch);
  EXPECT_GT(scratch.journal().body.capacity(), kLittle) << "a large one";
  scratch.KeepLittle();
  EXPECT_LE(scratch.journal().body.capacity(), kLittle);
  EXPECT_LE(scratch.journal().scaled.integers.capacity() * sizeof(std::int64_t), kLittle);
  // Of what most chunks take nothing is let go.
  EntryOf(MakeRandomChunk(random, 500), scratch);
  const char* const before = scratch.journal().body.data();
  scratch.KeepLittle();
  EXPECT_EQ(scratch.journal().body.data(), before);
}

}  // namespace
}  // namespace stepwell
