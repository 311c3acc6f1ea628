// Invariant: what strangers leave behind counts until gRPC has freed it, and so do calls that nobody but gRPC sees.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/server/stranger_watch_fixture.h"

namespace stepwell {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// What gRPC has not yet taken apart is there still: else whoever comes anew fast enough makes it more and more.
TEST_F(StrangerWatchTest, WhatIsClosingCountsUntilItIsGone) {
  sockets_.closes_late = true;
  for (int fd = 1; fd <= 8; ++fd) {
    Connect(fd, 0, AddressOf(fd));
    // Half of them hang up by themselves, right behind what they send.
    if (fd % 2 == 0) sockets_.over.insert(fd);
    sockets_.bytes[fd] = StrangerWatch::kBytesMax + 1;
    const std::vector<int> ended = Look();
    EXPECT_EQ(ended.size(), fd % 2 == 0 ? 0u : 1u);
    EXPECT_EQ(watch_.HasRoom(), fd < 8) << fd;
  }
  EXPECT_EQ(watch_.NextLook(), StrangerWatch::kLookEach);
  Pass(StrangerWatch::kClosingTimeMax - absl::Milliseconds(1));
  EXPECT_FALSE(watch_.HasRoom());
  EXPECT_EQ(freed_bytes_, 0);
  sockets_.bytes.erase(2);
  EXPECT_FALSE(watch_.HasRoom()) << "a look finds it";
  Look();
  EXPECT_TRUE(watch_.HasRoom());
  const std::int64_t freed_bytes = freed_bytes_;
  EXPECT_GE(freed_bytes, StrangerWatch::kBytesMax);
  Pass(absl::Milliseconds(1));
  EXPECT_EQ(watch_.NextLook(), absl::InfiniteDuration()) << "none holds a place for ever";
  EXPECT_EQ(freed_bytes_, freed_bytes) << "which are not free by that";
}

TEST_F(StrangerWatchTest, WhereMuchOfAnAddressIsClosingItIsRefused) {
  sockets_.closes_late = true;
  // As many; then as much; each beside another address.
  for (int fd = 1; fd <= static_cast<int>(StrangerWatch::kClosingShare); ++fd) {
    Connect(fd, StrangerWatch::kFewBytes);
    sockets_.over.insert(fd);
    Look();
  }
  Connect(101, StrangerWatch::kBytesMax + 1, "10.0.0.8");
  EXPECT_THAT(Look(), ElementsAre(101));
  for (const std::string address : {"10.0.0.7", "10.0.0.8"}) {
    EXPECT_STREQ(watch_.Add(EndOf(200), address, {200, 1}, now_),
                 "much of this address is not yet ended");
  }
  EXPECT_TRUE(watch_.HasRoom());
  Connect(201, 0, "10.0.0.9");
  sockets_.bytes.erase(1);
  sockets_.bytes.erase(101);
  Look();
  Connect(202, 0, "10.0.0.7");
  Connect(203, 0, "10.0.0.8");
}

TEST_F(StrangerWatchTest, WhereManyAreClosingNewcomersWait) {
  sockets_.closes_late = true;
  const int closing_max = static_cast<int>(StrangerWatch::kClosingMax);
  for (int fd = 1; fd <= closing_max; ++fd) {
    EXPECT_TRUE(watch_.HasRoom());
    Connect(fd, 0, AddressOf(fd));
    sockets_.over.insert(fd);
    EXPECT_THAT(Look(), IsEmpty());
  }
  EXPECT_FALSE(watch_.HasRoom());
  EXPECT_STREQ(watch_.Add(EndOf(1), "10.0.0.9", {1'000, 1}, now_),
               "another one of the same port is there");
  sockets_.bytes.erase(closing_max / 2);
  Look();
  EXPECT_TRUE(watch_.HasRoom());
}

// What is reset at once is nowhere but in gRPC's own counters.
TEST_F(StrangerWatchTest, WhoBeginsTooManyCallsWithoutATokenEnds) {
  for (int fd = 1; fd <= 3; ++fd) {
    Connect(fd, 0, AddressOf(fd));
    calls_.ends[10 + fd] = EndOf(fd);
    calls_.begun[10 + fd] = StrangerWatch::kCallsMax;
  }
  Show(3);
  Look();
  EXPECT_EQ(calls_.listed + calls_.asked, 0) << "hardly anything came";
  for (int fd = 1; fd <= 3; ++fd) sockets_.bytes[fd] = StrangerWatch::kCallsEachBytes;
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_EQ(calls_.listed, 1);
  EXPECT_EQ(calls_.asked, 2);
  for (int fd = 1; fd <= 3; ++fd) {
    calls_.begun[10 + fd] += 1;
    sockets_.bytes[fd] += StrangerWatch::kCallsEachBytes - 1;
  }
  EXPECT_THAT(Look(), IsEmpty()) << "so little more is not asked for";
  sockets_.bytes[2] += 1;
  EXPECT_THAT(Look(), ElementsAre(2));
  EXPECT_EQ(calls_.listed, 1) << "their counters are known";
}

// It is one crowd, which would come again.
TEST_F(StrangerWatchTest, WhoseAddressFloodsWithCallsEndsAndRests) {
  for (const bool is_over : {false, true}) {
    for (int fd = 1; fd <= 3; ++fd) Connect(fd, StrangerWatch::kCallsEachBytes);
    Connect(4, StrangerWatch::kCallsEachBytes - 1);
    Connect(5, StrangerWatch::kCallsEachBytes, "10.0.0.8");
    Show(3);
    calls_.ends[11] = EndOf(1);
    calls_.begun[11] = StrangerWatch::kCallsFlood + 1;
    // Who hangs up by himself is counted all the same.
    if (is_over) sockets_.over.insert(1);
    EXPECT_THAT(Look(),
                ::testing::UnorderedElementsAreArray(is_over ? std::vector{2} : std::vector{1, 2}));
    sockets_.bytes[6] = 0;
    const auto add = [&] { return watch_.Add(EndOf(6), "10.0.0.7", {6, 1}, now_); };
    EXPECT_STREQ(add(), "too many calls without a token came of this address");
    Connect(7, 0, "10.0.0.9");
    for (const int fd : {4, 5, 7}) Show(fd);
    Pass(StrangerWatch::kCallsRest - absl::Milliseconds(1));
    EXPECT_STREQ(add(), "too many calls without a token came of this address");
    EXPECT_EQ(watch_.NextLook(), StrangerWatch::kLookEach);
    Pass(absl::Milliseconds(1));
    EXPECT_EQ(watch_.NextLook(), StrangerWatch::kRestEach) << "nothing is kept of it";
    EXPECT_STREQ(add(), nullptr);
    sockets_.bytes.clear();
    now_ += absl::Seconds(10);
    Look();
    Look();
  }
}

// One client that goes on with an ended token keeps nobody out; a crowd of them is one.
TEST_F(StrangerWatchTest, AnAddressRestsForACrowdAlone) {
  for (int fd = 1; fd <= StrangerWatch::kCallsCrowd; ++fd) {
    Connect(fd, StrangerWatch::kCallsEachBytes);
    calls_.ends[10 + fd] = EndOf(fd);
    calls_.begun[10 + fd] = StrangerWatch::kCallsFlood;
  }
  const auto last = 10 + StrangerWatch::kCallsCrowd;
  calls_.begun[last] = StrangerWatch::kCallsMax;
  EXPECT_EQ(Look().size(), static_cast<std::size_t>(StrangerWatch::kCallsCrowd - 1));
  Look();
  Connect(100);
  for (int fd = 1; fd < StrangerWatch::kCallsCrowd; ++fd) {
    Connect(fd, StrangerWatch::kCallsEachBytes);
    calls_.begun[10 + fd] = StrangerWatch::kCallsMax + 1;
  }
  calls_.begun[last] += 1;
  sockets_.bytes[StrangerWatch::kCallsCrowd] += StrangerWatch::kCallsEachBytes;
  EXPECT_EQ(Look().size(), static_cast<std::size_t>(StrangerWatch::kCallsCrowd));
  sockets_.bytes[101] = 0;
  EXPECT_STREQ(watch_.Add(EndOf(101), "10.0.0.7", {101, 1}, now_),
               "too many calls without a token came of this address");
}

// A thousand calls may wait to be read.
TEST_F(StrangerWatchTest, WhatCameBeforeTheOtherEndResetIsDropped) {
  sockets_.closes_late = true;
  Connect(1, StrangerWatch::kFewBytes);
  Connect(2);
  sockets_.over.insert(1);
  EXPECT_THAT(Look(), IsEmpty()) << "nobody is told";
  EXPECT_THAT(sockets_.shut, ElementsAre(1));
}

TEST_F(StrangerWatchTest, OneInItsHandshakeIsCountedOnceItHasACounter) {
  // Listed behind one that began after it.
  calls_.ends[12] = EndOf(2);
  calls_.begun[12] = 1;
  Connect(1, 2 * StrangerWatch::kCallsEachBytes);
  Connect(2, 2 * StrangerWatch::kCallsEachBytes, AddressOf(2));
  EXPECT_THAT(Look(), IsEmpty());
  calls_.ends[11] = EndOf(1);
  calls_.begun[11] = StrangerWatch::kCallsMax + 1;
  EXPECT_THAT(Look(), ElementsAre(1));
}

TEST_F(StrangerWatchTest, WhoIsAStrangerAgainBeginsAnewWithItsCalls) {
  for (int fd = 1; fd <= 2; ++fd) {
    Connect(fd, 0, AddressOf(fd));
    calls_.ends[10 + fd] = EndOf(fd);
    calls_.begun[10 + fd] = 1'000'000;
  }
  const Caller first = Show(1);
  const Caller second = Show(2);
  // Others' counters are far ahead by now.
  Connect(3, 2 * StrangerWatch::kCallsEachBytes);
  calls_.ends[9'000] = EndOf(3);
  calls_.begun[9'000] = 1;
  Look();
  first->has_ended = second->has_ended = true;
  now_ += StrangerWatch::kRestEach;
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_THAT(Look(), IsEmpty());
  calls_.begun[11] += StrangerWatch::kCallsMax + 1;
  sockets_.bytes[1] += StrangerWatch::kCallsEachBytes;
  calls_.begun[12] += StrangerWatch::kCallsMax;
  sockets_.bytes[2] += StrangerWatch::kCallsEachBytes;
  EXPECT_THAT(Look(), ElementsAre(1));
}

// Those who are there already make it no more either.
TEST_F(StrangerWatchTest, WhereMuchIsClosingStrangersMayHaveLess) {
  sockets_.closes_late = true;
  for (int fd = 1; fd <= 7; ++fd) Connect(fd, 1 << 20, AddressOf(fd));
  Connect(8, StrangerWatch::kFewBytes, AddressOf(8));
  Look();
  int ended_count = 0;
  for (int fd = 11; fd <= 19; ++fd) {
    Connect(fd, StrangerWatch::kBytesMax + StrangerWatch::kFewBytes, AddressOf(fd));
    Look();
    // What is beyond 32 MiB is taken from what all may have; a look ends no more than that.
    ended_count = 0;
    for (int at = 1; at <= 7; ++at) ended_count += static_cast<int>(sockets_.shut.count(at));
    if (fd == 14) {
      EXPECT_EQ(ended_count, 0);
    }
  }
  Look();
  EXPECT_EQ(sockets_.shut.count(8), 0u);
  for (int fd = 1; fd <= 7; ++fd) EXPECT_EQ(sockets_.shut.count(fd), 1u) << fd;
  sockets_.bytes[8] += 1;
  EXPECT_THAT(Look(), ElementsAre(8));
}

// gRPC stood still as well.
TEST_F(StrangerWatchTest, AStandstillIsNoMinuteForWhatIsClosing) {
  sockets_.closes_late = true;
  Connect(1);
  sockets_.over.insert(1);
  Look();
  now_ += absl::Hours(1);
  Look();
  EXPECT_EQ(watch_.NextLook(), StrangerWatch::kLookEach);
  Pass(StrangerWatch::kClosingTimeMax);
  EXPECT_EQ(watch_.NextLook(), absl::InfiniteDuration());
}

}  // namespace
}  // namespace stepwell
