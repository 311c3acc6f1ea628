#include "server/journal_codec.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "server/chunk_check.h"
#include "tests/unit/server/chunk_maker.h"
#include "tests/unit/server/test_seed.h"

namespace stepwell {
namespace {

struct Random {
  std::mt19937_64 bits;
  std::uint64_t Below(std::uint64_t end) { return bits() % end; }
  // Small as often as large.
  std::uint64_t Number() { return bits() >> Below(64); }
};

JournalEntry MakeEntry(Random& random, std::string& body) {
  JournalEntry entry;
  entry.first_sequence = random.Number() / 2;
  entry.last_sequence = entry.first_sequence + random.Number() / 2;
  entry.attempt = static_cast<std::int32_t>(random.Below(1U << 31));
  entry.sealed_time_us = static_cast<std::int64_t>(random.bits());
  entry.crc32c = static_cast<std::uint32_t>(random.bits());
  entry.has_body = random.Below(4) != 0;
  if (!entry.has_body) return entry;
  for (std::uint64_t t = random.Below(4); t > 0; --t) {
    TableTarget table{static_cast<std::uint32_t>(random.bits()), {}};
    for (std::uint64_t c = random.Below(5); c > 0; --c) {
      table.columns.push_back({static_cast<SeriesNo>(random.Below(1U << 31)), random.Number()});
    }
    entry.targets.push_back(table);
  }
  body.resize(random.Below(300));
  for (char& byte : body) byte = static_cast<char>(random.bits());
  entry.body = body;
  return entry;
}

TEST(JournalCodecTest, EveryEntryComesBack) {
  Random random{std::mt19937_64(TestSeed())};
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> bodies(random.Below(6));
    std::vector<JournalEntry> entries;
    std::string payload;
    for (std::string& body : bodies) {
      entries.push_back(MakeEntry(random, body));
      AppendJournalEntry(entries.back(), payload);
    }
    std::vector<JournalEntry> decoded;
    ASSERT_TRUE(DecodeJournalPayload(payload, decoded).ok());
    ASSERT_EQ(decoded.size(), entries.size());
    for (std::size_t i = 0; i < entries.size(); ++i) {
      EXPECT_EQ(decoded[i].first_sequence, entries[i].first_sequence);
      EXPECT_EQ(decoded[i].last_sequence, entries[i].last_sequence);
      EXPECT_EQ(decoded[i].attempt, entries[i].attempt);
      EXPECT_EQ(decoded[i].sealed_time_us, entries[i].sealed_time_us);
      EXPECT_EQ(decoded[i].crc32c, entries[i].crc32c);
      EXPECT_EQ(decoded[i].has_body, entries[i].has_body);
      EXPECT_EQ(decoded[i].targets, entries[i].targets);
      EXPECT_EQ(decoded[i].body, entries[i].body);
    }
  }
}

TEST(JournalCodecTest, DamageIsAnErrorOrAnotherEntryNeverACrash) {
  Random random{std::mt19937_64(TestSeed())};
  std::string payload;
  std::string body = MakeBody(1, {1, 2, 3}).SerializeAsString();
  AppendJournalEntry({.first_sequence = 5,
                      .last_sequence = 5,
                      .attempt = 1,
                      .sealed_time_us = -7,
                      .crc32c = 99,
                      .has_body = true,
                      .targets = {{1, {{static_cast<SeriesNo>(4), 1}}}},
                      .body = body},
                     payload);
  for (int round = 0; round < 20'000; ++round) {
    std::string damaged = payload;
    for (std::uint64_t i = 1 + random.Below(3); i > 0; --i) {
      damaged[random.Below(damaged.size())] = static_cast<char>(random.bits());
    }
    if (random.Below(3) == 0) damaged.resize(random.Below(damaged.size()));
    std::vector<JournalEntry> decoded;
    DecodeJournalPayload(damaged, decoded).IgnoreError();
    for (JournalEntry& entry : decoded) {
      DecodedChunk chunk;
      if (!entry.has_body) continue;
      const std::uint32_t right = ChunkCrc32c(entry.first_sequence, entry.sealed_time_us,
                                              {entry.body.data(), entry.body.size()});
      if (entry.crc32c != right) {
        ASSERT_TRUE(absl::IsDataLoss(DecodeJournalBody(entry, chunk)));
      }
      entry.crc32c = right;  // what no checksum saves from
      DecodeJournalBody(entry, chunk).IgnoreError();
    }
  }
}

TEST(JournalCodecTest, ReplayGivesWhatTheCheckGave) {
  pb::ChunkBody body = MakeBody(1, {1.5, 2.5});
  pb::Column& refused = *body.mutable_tables(0)->add_columns();
  refused.set_ref(4);
  refused.add_doubles(8);
  refused.add_doubles(9);
  pb::Table& exact = *body.add_tables();
  exact.set_tick_group(2);
  exact.set_first_batch(-1);
  exact.add_columns()->set_ref(3);
  exact.mutable_columns(0)->add_integers(1234);
  const pb::Chunk chunk = MakeChunk(1, body);
  const ChunkContent content = CheckChunkContent(chunk, MakeRefs(), static_cast<WriterNo>(1));
  std::string payload;
  AppendJournalEntry({.first_sequence = 1,
                      .last_sequence = 1,
                      .attempt = 1,
                      .sealed_time_us = chunk.sealed_time_us(),
                      .crc32c = chunk.crc32c(),
                      .has_body = true,
                      .targets = content.targets,
                      .body = chunk.body()},
                     payload);
  std::vector<JournalEntry> entries;
  ASSERT_TRUE(DecodeJournalPayload(payload, entries).ok());
  DecodedChunk replayed;
  ASSERT_TRUE(DecodeJournalBody(entries[0], replayed).ok());
  EXPECT_EQ(replayed.sample_count, content.decoded.sample_count);
  EXPECT_EQ(replayed.dropped_count, 2);
  ASSERT_EQ(replayed.tables.size(), 2U);
  EXPECT_EQ(replayed.tables[1].columns[0].values, (std::vector<double>{1.234}));
  EXPECT_EQ(replayed.tables[0].times_us, content.decoded.tables[0].times_us);
}

}  // namespace
}  // namespace stepwell
