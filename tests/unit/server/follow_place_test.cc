#include "server/follow_place.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "absl/strings/escaping.h"
#include "base/crc32c.h"
#include "tests/unit/server/test_seed.h"

namespace stepwell {
namespace {

constexpr TrialId kTrial = static_cast<TrialId>(1'000'000'007);

WriterNo Writer(int no) { return static_cast<WriterNo>(no); }

FollowPlace SomePlace() {
  FollowPlace place;
  EXPECT_TRUE(place.Pass(Writer(3), 300));
  EXPECT_TRUE(place.Pass(Writer(1), 1));
  place.log_id = 0xFEDCBA9876543210;
  place.log_index = 77;
  place.received_time_us = 1'700'000'000'000'000;
  return place;
}

// The bytes of a cursor, changed, with a checksum that fits them.
std::string Changed(const std::string& cursor, const std::function<void(std::string&)>& change) {
  std::string bytes;
  EXPECT_TRUE(absl::WebSafeBase64Unescape(cursor, &bytes));
  bytes.resize(bytes.size() - 4);
  change(bytes);
  const std::uint32_t crc = Crc32c(bytes);
  for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<char>(crc >> (8 * i)));
  return absl::WebSafeBase64Escape(bytes);
}

TEST(FollowPlaceTest, MovesForwardOnlyAndKnowsNothingOfOthers) {
  FollowPlace place = SomePlace();
  EXPECT_EQ(place.SequenceOf(Writer(2)), 0U);
  EXPECT_EQ(place.SequenceOf(Writer(4)), 0U);
  EXPECT_TRUE(place.Pass(Writer(3), 200));
  EXPECT_EQ(place.SequenceOf(Writer(3)), 300U);
  EXPECT_EQ(place.writer_no_max(), 3);
  EXPECT_TRUE(place.Pass(Writer(kFollowWritersMax), 1));
  EXPECT_FALSE(place.Pass(Writer(kFollowWritersMax + 1), 1));
  EXPECT_FALSE(place.Pass(Writer(0), 1));
}

TEST(FollowPlaceTest, ACursorIsThePlace) {
  const std::uint64_t seed = TestSeed();
  std::mt19937_64 random(seed);
  const Uuid database = Uuid::Random();
  for (int round = 0; round < 50; ++round) {
    FollowPlace place = SomePlace();
    for (int i = 0; i < 200; ++i) {
      ASSERT_TRUE(
          place.Pass(Writer(1 + static_cast<int>(random() % 500)), random() >> random() % 64));
    }
    const auto read = FollowPlace::FromCursor(place.ToCursor(database, kTrial), database, kTrial);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->log_id, place.log_id);
    EXPECT_EQ(read->log_index, place.log_index);
    EXPECT_EQ(read->received_time_us, place.received_time_us);
    ASSERT_EQ(read->writer_no_max(), place.writer_no_max());
    for (int no = 1; no <= place.writer_no_max(); ++no) {
      EXPECT_EQ(read->SequenceOf(Writer(no)), place.SequenceOf(Writer(no)));
    }
  }
}

TEST(FollowPlaceTest, TheMostWritersFitAndNoMore) {
  const Uuid database = Uuid::Random();
  FollowPlace place;
  for (int no = 1; no <= kFollowWritersMax; ++no) ASSERT_TRUE(place.Pass(Writer(no), UINT64_MAX));
  const std::string cursor = place.ToCursor(database, kTrial);
  EXPECT_TRUE(FollowPlace::FromCursor(cursor, database, kTrial).ok());
  EXPECT_FALSE(FollowPlace::FromCursor(cursor + cursor, database, kTrial).ok());
}

TEST(FollowPlaceTest, WhatIsNoCursorOfThisTrialIsRefused) {
  const Uuid database = Uuid::Random();
  const std::string cursor = SomePlace().ToCursor(database, kTrial);
  std::string flipped = cursor;
  flipped[30] = flipped[30] == 'A' ? 'B' : 'A';
  const struct {
    const char* name;
    std::string text;
    Uuid database;
    TrialId trial_id;
    const char* says;
  } rows[] = {
      {"no base64", "?", database, kTrial, "no cursor of ours"},
      {"short", "AQ", database, kTrial, "no cursor of ours"},
      {"cut", cursor.substr(0, cursor.size() - 4), database, kTrial, "no cursor of ours"},
      {"a byte differs", flipped, database, kTrial, "no cursor of ours"},
      {"another trial", cursor, database, static_cast<TrialId>(2), "another trial"},
      {"another version", Changed(cursor, [](std::string& bytes) { bytes[0] = 2; }), database,
       kTrial, "another version"},
      {"more than it says", Changed(cursor, [](std::string& bytes) { bytes += '\1'; }), database,
       kTrial, "no cursor of ours"},
      {"less than it says", Changed(cursor, [](std::string& bytes) { bytes.pop_back(); }), database,
       kTrial, "no cursor of ours"},
      {"a number without end",
       Changed(cursor, [](std::string& bytes) { bytes.back() = static_cast<char>(0x80); }),
       database, kTrial, "no cursor of ours"},
      {"far too long", std::string(4 << 20, 'A'), database, kTrial, "no cursor of ours"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const auto read = FollowPlace::FromCursor(row.text, row.database, row.trial_id);
    EXPECT_TRUE(absl::IsInvalidArgument(read.status())) << read.status();
    EXPECT_EQ(read.status().message().substr(0, 8), "cursor: ");
    EXPECT_NE(read.status().message().find(row.says), std::string::npos) << read.status();
  }
}

TEST(FollowPlaceTest, SaysWhoseDatabaseItIsOf) {
  const Uuid database = Uuid::Random();
  const std::string cursor = SomePlace().ToCursor(database, kTrial);
  const auto own = FollowPlace::FromCursor(cursor, database, kTrial);
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_FALSE(own->is_of_another_database);
  const auto another = FollowPlace::FromCursor(cursor, Uuid::Random(), kTrial);
  ASSERT_TRUE(another.ok()) << another.status();
  EXPECT_TRUE(another->is_of_another_database);
  EXPECT_EQ(another->received_time_us, SomePlace().received_time_us);
}

}  // namespace
}  // namespace stepwell
