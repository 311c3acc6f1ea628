// Invariant: a connection on which nobody is known takes no more than its bounds, in bytes and in time, alone and together
// with others; one that showed a token that lives is asked for none of it, for as long as one of those lives.
#include "server/stranger_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/unit/server/stranger_watch_fixture.h"

namespace stepwell {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(StrangerWatchTest, WhoSendsMoreThanAMessageWithoutATokenEnds) {
  Connect(1);
  Connect(2);
  Show(2);
  sockets_.bytes[1] = StrangerWatch::kBytesMax;
  sockets_.bytes[2] = 100 * StrangerWatch::kBytesMax;
  EXPECT_THAT(Look(), IsEmpty());
  ++sockets_.bytes[1];
  EXPECT_THAT(Look(), ElementsAre(1));
  EXPECT_THAT(Look(), IsEmpty()) << "once";
}

TEST_F(StrangerWatchTest, ManyThatSendALittleMuchEndFromTheLargestOn) {
  // Each is within what one may send.
  constexpr std::int64_t kEach = StrangerWatch::kManyBytesMax / 16;
  static_assert(kEach + StrangerWatch::kFewBytes + 2 < StrangerWatch::kBytesMax);
  for (int fd = 1; fd <= 16; ++fd) Connect(fd, kEach + StrangerWatch::kFewBytes);
  EXPECT_THAT(Look(), IsEmpty());
  sockets_.bytes[5] += 2;
  EXPECT_THAT(Look(), ElementsAre(5));
  // There is room again for as much.
  Connect(17, kEach + StrangerWatch::kFewBytes);
  EXPECT_THAT(Look(), IsEmpty());
}

// One that sends a message's worth stays where hundreds of another address hold what all may have.
TEST_F(StrangerWatchTest, WhoseAddressSentMostEndsFirst) {
  for (int fd = 1; fd <= 120; ++fd) Connect(fd, 2 * StrangerWatch::kFewBytes);
  EXPECT_THAT(Look(), IsEmpty());
  Connect(200, kMessageReadBytesMax, "10.0.0.8");
  const std::vector<int> ended = Look();
  EXPECT_THAT(ended, ::testing::Not(IsEmpty()));
  EXPECT_THAT(ended, ::testing::Not(::testing::Contains(200)));
}

// Calls without a message cost memory and hardly a byte.
TEST_F(StrangerWatchTest, ThereAreSoManyAtATime) {
  const int count_max = static_cast<int>(StrangerWatch::kCountMax);
  for (int fd = 1; fd < count_max; ++fd) Connect(fd, 0, "10.0.0." + std::to_string(fd));
  EXPECT_TRUE(watch_.HasRoom());
  Connect(count_max, 0, "10.0.1.1");
  EXPECT_FALSE(watch_.HasRoom());
  Look();
  now_ += StrangerWatch::kTimeWhenFull - absl::Milliseconds(1);
  Look();
  EXPECT_THAT(Look(), IsEmpty()) << "newcomers wait";
  // Whoever is known makes room.
  const Caller known = Show(1);
  EXPECT_TRUE(watch_.HasRoom());
  Connect(count_max + 1, 0, "10.0.1.2");
  EXPECT_FALSE(watch_.HasRoom());
  now_ += absl::Milliseconds(1);
  EXPECT_EQ(Look().size(), StrangerWatch::kRoomEach) << "the oldest";
  EXPECT_EQ(sockets_.shut.count(count_max + 1), 0u);
  EXPECT_EQ(sockets_.shut.count(1), 0u) << "who is known is none of them";
  EXPECT_TRUE(watch_.HasRoom());
}

TEST_F(StrangerWatchTest, OfWhomThereAreManyGoesFirstWhereThereIsNoRoom) {
  const int count_max = static_cast<int>(StrangerWatch::kCountMax);
  // The oldest of all, and alone.
  Connect(1, 0, "10.0.0.8");
  for (int fd = 2; fd <= count_max; ++fd) {
    now_ += absl::Milliseconds(1);
    Connect(fd);
  }
  EXPECT_TRUE(watch_.HasRoom()) << "for others";
  sockets_.bytes[1000] = 0;
  EXPECT_STREQ(watch_.Add(EndOf(1000), "10.0.0.7", {1000, 1}, now_),
               "too many connections without a token");
  EXPECT_THAT(sockets_.shut, IsEmpty());
  Connect(1001, 0, "10.0.0.9");
  EXPECT_THAT(sockets_.shut, ElementsAre(2)) << "at once, the oldest of whom there are many";
  EXPECT_THAT(Look(), ElementsAre(2)) << "told with the next look";
  EXPECT_THAT(Look(), IsEmpty()) << "once";
  // Of so many addresses that none has more than a share everybody waits.
  for (int fd = 2000; fd < 2000 + count_max && watch_.HasRoom(); ++fd) {
    Connect(fd, 0, "10.1.0." + std::to_string(fd));
    Look();
  }
  EXPECT_FALSE(watch_.HasRoom());
  EXPECT_EQ(sockets_.shut.size(), StrangerWatch::kCountMax - 1 - StrangerWatch::kShareWhenFull);
}

// Whoever is slow has his time while somebody else holds more than a share.
TEST_F(StrangerWatchTest, NobodyEndsForWhoHasTooMany) {
  const int count_max = static_cast<int>(StrangerWatch::kCountMax);
  Connect(1, 0, "10.0.0.8");
  for (int fd = 2; fd <= count_max; ++fd) Connect(fd);
  Look();
  now_ += StrangerWatch::kTimeWhenFull - absl::Milliseconds(25);
  Look();
  now_ += absl::Milliseconds(25);
  const std::vector<int> ended = Look();
  EXPECT_EQ(ended.size(), StrangerWatch::kRoomEach);
  EXPECT_THAT(ended, ::testing::Not(::testing::Contains(1)));
}

// What a stopped machine, or one that swaps, has kept from being shown is shown first.
TEST_F(StrangerWatchTest, AfterAStandstillEverybodyHasAMoment) {
  const int count_max = static_cast<int>(StrangerWatch::kCountMax);
  for (int fd = 1; fd <= count_max; ++fd) Connect(fd, 0, "10.0.0." + std::to_string(fd));
  Look();
  now_ += absl::Seconds(5);
  EXPECT_THAT(Look(), IsEmpty());
  for (int fd = 1; fd <= 100; ++fd) Show(fd);
  now_ += StrangerWatch::kLookEach;
  EXPECT_THAT(Look(), IsEmpty()) << "there is room";
}

TEST_F(StrangerWatchTest, WhoShowsNothingInTimeEnds) {
  Connect(1);
  now_ += absl::Seconds(10);
  Connect(2);
  Connect(3);
  Show(3);
  EXPECT_THAT(Look(), IsEmpty());
  now_ += absl::Seconds(20);
  EXPECT_THAT(Look(), ElementsAre(1));
  now_ += absl::Seconds(10);
  EXPECT_THAT(Look(), ElementsAre(2));
  now_ += absl::Hours(1000);
  EXPECT_THAT(Look(), IsEmpty());
}

TEST_F(StrangerWatchTest, WhoseTokenEndedIsAStrangerFromThenOn) {
  Connect(1);
  const Caller first = Show(1);
  const Caller second = Show(1);
  now_ += absl::Hours(1);
  sockets_.bytes[1] = 100 * StrangerWatch::kBytesMax;
  EXPECT_THAT(Look(), IsEmpty());
  first->has_ended = true;
  now_ += absl::Hours(1);
  EXPECT_THAT(Look(), IsEmpty()) << "another one of it lives";
  second->has_ended = true;
  now_ += StrangerWatch::kRestEach;
  EXPECT_THAT(Look(), IsEmpty()) << "what came before was its own";
  EXPECT_EQ(watch_.NextLook(), StrangerWatch::kLookEach);
  sockets_.bytes[1] += StrangerWatch::kBytesMax;
  now_ += absl::Seconds(29);
  EXPECT_THAT(Look(), IsEmpty());
  ++sockets_.bytes[1];
  EXPECT_THAT(Look(), ElementsAre(1));
}

TEST_F(StrangerWatchTest, OneWhoComesBackWithANewTokenIsKnownAgain) {
  Connect(1);
  Show(1)->has_ended = true;
  EXPECT_THAT(Look(), IsEmpty());
  now_ += absl::Seconds(29);
  Show(1);
  EXPECT_THAT(Look(), IsEmpty());
  now_ += absl::Hours(1);
  EXPECT_THAT(Look(), IsEmpty());
}

// Of so many that all are shown in turns each lives: the connection is no stranger's, whoever's is forgotten.
TEST_F(StrangerWatchTest, ManyTokensOnOneConnectionAreBounded) {
  Connect(1);
  std::vector<Caller> callers;
  for (int i = 0; i < 200; ++i) {
    callers.push_back(std::make_shared<TokenHolder>());
    callers.back()->expires_time_us = i % 50 == 0 ? 0 : 1'000'000 + i;
    watch_.Know("ipv4:" + EndOf(1), callers.back());
  }
  // All that end, in their time.
  for (const Caller& each : callers) each->has_ended = each->expires_time_us != 0;
  now_ += absl::Hours(1);
  EXPECT_THAT(Look(), IsEmpty()) << "one that ends never was forgotten for one that does";
  for (const Caller& each : callers) each->has_ended = false;
  for (int i = 0; i < 200; ++i)
    watch_.Know("ipv4:" + EndOf(1), callers[static_cast<std::size_t>(i)]);
  std::size_t held = 0;
  for (const Caller& each : callers) held += static_cast<std::size_t>(each.use_count() - 1);
  EXPECT_EQ(held, StrangerWatch::kCallersMax);
}

TEST_F(StrangerWatchTest, WhatIsGoneIsForgotten) {
  Connect(1);
  Connect(2);
  const Caller known = Show(2);
  EXPECT_EQ(watch_.NextLook(), StrangerWatch::kLookEach);
  sockets_.bytes.erase(1);
  EXPECT_THAT(Look(), IsEmpty());
  Look();
  EXPECT_EQ(watch_.NextLook(), StrangerWatch::kRestEach);
  const int asked = sockets_.asked;
  Look();
  EXPECT_EQ(sockets_.asked, asked) << "who is known costs no call";
  sockets_.bytes.clear();
  now_ += absl::Seconds(10);
  Look();
  EXPECT_EQ(watch_.NextLook(), absl::InfiniteDuration());
  EXPECT_EQ(known.use_count(), 1);
  // Over, though its owner has not closed it.
  Connect(3);
  const Caller over = Show(3);
  sockets_.over.insert(3);
  now_ += absl::Seconds(10);
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_EQ(over.use_count(), 1);
}

// Which of two with the same other end a call came on is not told: there is one at a time, and a new one is not the old one.
TEST_F(StrangerWatchTest, OfTwoWithTheSameOtherEndTheSecondIsNotTaken) {
  for (const bool is_known : {false, true}) {
    sockets_.over.clear();
    Connect(1);
    if (is_known) Show(1);
    sockets_.bytes[2] = 0;
    EXPECT_STREQ(watch_.Add(EndOf(1), "10.0.0.7", {2, 2}, now_),
                 "another one of the same port is there");
    sockets_.over.insert(1);
    EXPECT_STREQ(watch_.Add(EndOf(1), "10.0.0.7", {2, 2}, now_),
                 "another one of the same port is there")
        << "over, and gRPC has it still";
    // Gone, which no look has seen.
    sockets_.bytes.erase(1);
    EXPECT_STREQ(watch_.Add(EndOf(1), "10.0.0.7", {2, 2}, now_), nullptr) << is_known;
    sockets_.bytes[2] = StrangerWatch::kBytesMax + 1;
    EXPECT_THAT(Look(), ElementsAre(2)) << is_known;
    Look();
  }
}

TEST_F(StrangerWatchTest, WhatTheyHeldIsTold) {
  Connect(1, 1'000);
  Connect(2, 2'000);
  Look();
  EXPECT_EQ(freed_bytes_, 0);
  sockets_.bytes.erase(1);
  Look();
  EXPECT_GE(freed_bytes_, 1'000);
  sockets_.bytes[2] = StrangerWatch::kBytesMax + 1;
  Look();
  Look();
  EXPECT_GE(freed_bytes_, 1'000 + StrangerWatch::kBytesMax);
  const std::int64_t before_silent = freed_bytes_;
  Connect(4);
  sockets_.bytes.erase(4);
  Look();
  EXPECT_EQ(freed_bytes_, before_silent) << "who sent nothing held nothing";
  Connect(3, 3'000);
  Look();
  Show(3);
  const std::int64_t before = freed_bytes_;
  sockets_.bytes.clear();
  now_ += absl::Hours(1);
  Look();
  EXPECT_EQ(freed_bytes_, before) << "who is known is no stranger";
}

TEST_F(StrangerWatchTest, CallsFromElsewhereAreNobodys) {
  Connect(1);
  watch_.Know("inproc", std::make_shared<TokenHolder>());
  watch_.Know("", std::make_shared<TokenHolder>());
  watch_.Know("ipv4:10.0.0.8:1", std::make_shared<TokenHolder>());
  watch_.Know("ipv4:10.0.0.7:1", nullptr);
  now_ += StrangerWatch::kTimeMax;
  EXPECT_THAT(Look(), ElementsAre(1));
}

}  // namespace
}  // namespace stepwell
