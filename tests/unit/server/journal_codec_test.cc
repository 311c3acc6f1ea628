#include "server/journal_codec.h"

#include <gtest/gtest.h>

#include <random>

#include "absl/strings/escaping.h"
#include "server/chunk_check.h"
#include "tests/unit/server/chunk_maker.h"
#include "tests/unit/server/test_seed.h"

namespace stepwell {
namespace {

// What the release before wrote (form 1): sequences 3 to 5 without a body; then sequence 6 with the
// body of TwoTables as it came.
constexpr char kFormBodyHex[] =
    "01030202000000010600028080f28183898506c0cad64e0301010b0102010de807370a270801108080f9c0c1c48203"
    "1a"
    "02d00f2001321408011210000000000000f83f00000000000004400a0c08022001320608031a02a413";

pb::ChunkBody TwoTables() {
  pb::ChunkBody body = MakeBody(1, {1.5, 2.5});
  pb::Table& exact = *body.add_tables();
  exact.set_tick_group(2);
  exact.set_first_batch(-1);
  exact.add_columns()->set_ref(3);
  exact.mutable_columns(0)->add_integers(1234);
  return body;
}

struct Random {
  std::mt19937_64 bits;
  std::uint64_t Below(std::uint64_t end) { return bits() % end; }
  // Small as often as large.
  std::uint64_t Number() { return bits() >> Below(64); }
};

JournalEntry MakeEntry(Random& random) {
  JournalEntry entry;
  entry.first_sequence = random.Number() / 2;
  entry.last_sequence = entry.first_sequence + random.Number() / 2;
  entry.attempt = static_cast<std::int32_t>(random.Below(1U << 31));
  entry.sealed_time_us = static_cast<std::int64_t>(random.bits());
  entry.has_body = random.Below(4) != 0;
  return entry;
}

std::vector<TickTable> MakeTables(Random& random) {
  std::vector<TickTable> tables(random.Below(4));
  for (TickTable& table : tables) {
    table.tick_group = static_cast<std::uint32_t>(random.bits());
    table.times_us = {static_cast<std::int64_t>(random.Number()), 7};
    table.batches = {-1, 3};
    table.columns.push_back({.series_no = SeriesNo{5}, .values = {0.5, 8}, .presence = {}});
  }
  return tables;
}

std::string BytesOfForm1() {
  return std::string(absl::HexStringToBytes(absl::string_view(kFormBodyHex)));
}

TEST(JournalCodecTest, EveryEntryComesBack) {
  Random random{std::mt19937_64(TestSeed())};
  for (int round = 0; round < 200; ++round) {
    std::vector<JournalEntry> entries(random.Below(6));
    std::vector<std::vector<TickTable>> tables;
    std::string payload;
    for (JournalEntry& entry : entries) {
      entry = MakeEntry(random);
      tables.push_back(entry.has_body ? MakeTables(random) : std::vector<TickTable>());
      AppendJournalEntry(entry, tables.back(), payload);
    }
    std::vector<JournalEntry> decoded;
    ASSERT_TRUE(DecodeJournalPayload(payload, decoded).ok());
    ASSERT_EQ(decoded.size(), entries.size());
    for (std::size_t i = 0; i < entries.size(); ++i) {
      EXPECT_EQ(decoded[i].first_sequence, entries[i].first_sequence);
      EXPECT_EQ(decoded[i].last_sequence, entries[i].last_sequence);
      EXPECT_EQ(decoded[i].attempt, entries[i].attempt);
      EXPECT_EQ(decoded[i].sealed_time_us, entries[i].sealed_time_us);
      EXPECT_EQ(decoded[i].has_body, entries[i].has_body);
      DecodedChunk chunk;
      ASSERT_TRUE(DecodeJournalBody(decoded[i], chunk).ok());
      ASSERT_EQ(chunk.tables.size(), tables[i].size());
      EXPECT_EQ(chunk.sample_count, static_cast<std::int64_t>(2 * tables[i].size()));
    }
  }
}

TEST(JournalCodecTest, DamageIsAnErrorOrAnotherEntryNeverACrash) {
  Random random{std::mt19937_64(TestSeed())};
  std::string ticks;
  const ChunkContent content =
      CheckChunkContent(MakeChunk(5, TwoTables()), MakeRefs(), WriterNo{1});
  AppendJournalEntry({.first_sequence = 5,
                      .last_sequence = 5,
                      .attempt = 1,
                      .sealed_time_us = -7,
                      .has_body = true},
                     content.decoded.tables, ticks);
  for (const std::string& payload : {ticks, BytesOfForm1()}) {
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
}

TEST(JournalCodecTest, ReplayGivesWhatTheCheckGave) {
  pb::ChunkBody body = TwoTables();
  pb::Column& refused = *body.mutable_tables(0)->add_columns();
  refused.set_ref(4);
  refused.add_doubles(8);
  refused.add_doubles(9);
  const pb::Chunk chunk = MakeChunk(1, body);
  const ChunkContent content = CheckChunkContent(chunk, MakeRefs(), WriterNo{1});
  ASSERT_EQ(content.decoded.dropped_count, 2);
  std::string payload;
  AppendJournalEntry({.first_sequence = 1,
                      .last_sequence = 1,
                      .attempt = 1,
                      .sealed_time_us = chunk.sealed_time_us(),
                      .has_body = true},
                     content.decoded.tables, payload);
  std::vector<JournalEntry> entries;
  ASSERT_TRUE(DecodeJournalPayload(payload, entries).ok());
  DecodedChunk replayed;
  ASSERT_TRUE(DecodeJournalBody(entries[0], replayed).ok());
  EXPECT_EQ(replayed.sample_count, content.decoded.sample_count);
  EXPECT_EQ(replayed.bytes, content.decoded.bytes);
  ASSERT_EQ(replayed.tables.size(), 2U);
  EXPECT_EQ(replayed.tables[1].columns[0].values, (std::vector<double>{1.234}));
  EXPECT_EQ(replayed.tables[0].times_us, content.decoded.tables[0].times_us);
}

TEST(JournalCodecTest, WhatTheReleaseBeforeWroteIsRead) {
  const std::string payload = BytesOfForm1();
  std::vector<JournalEntry> entries;
  ASSERT_TRUE(DecodeJournalPayload(payload, entries).ok());
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_FALSE(entries[0].has_body);
  EXPECT_EQ(entries[0].first_sequence, 3U);
  EXPECT_EQ(entries[0].last_sequence, 5U);
  EXPECT_EQ(entries[1].last_sequence, 6U);
  EXPECT_EQ(entries[1].attempt, 2);
  const ChunkContent content =
      CheckChunkContent(MakeChunk(6, TwoTables()), MakeRefs(), WriterNo{1});
  DecodedChunk replayed;
  ASSERT_TRUE(DecodeJournalBody(entries[1], replayed).ok());
  ASSERT_EQ(replayed.tables.size(), 2U);
  for (std::size_t t = 0; t < 2; ++t) {
    const TickTable& expected = content.decoded.tables[t];
    EXPECT_EQ(replayed.tables[t].tick_group, expected.tick_group);
    EXPECT_EQ(replayed.tables[t].times_us, expected.times_us);
    EXPECT_EQ(replayed.tables[t].batches, expected.batches);
    ASSERT_EQ(replayed.tables[t].columns.size(), expected.columns.size());
    EXPECT_EQ(replayed.tables[t].columns[0].series_no, expected.columns[0].series_no);
    EXPECT_EQ(replayed.tables[t].columns[0].values, expected.columns[0].values);
  }
}

TEST(JournalCodecTest, AFormOfALaterReleaseIsRefused) {
  std::vector<JournalEntry> entries;
  EXPECT_TRUE(absl::IsDataLoss(DecodeJournalPayload("\x03\x01\x00", entries)));
}

}  // namespace
}  // namespace stepwell
