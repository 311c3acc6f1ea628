// What a board keeps of directives, and how much of messages; its acks are tested with the stream.
#include "server/ack_board.h"
#include "base/steady_time.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace stepwell {
namespace {

class AckBoardTest : public ::testing::Test {
 protected:
  static pb::Directive Sampling(const Uuid& writer, bool on) {
    pb::Directive directive;
    directive.set_writer(writer.ToBytes());
    directive.mutable_sampling()->set_on(on);
    return directive;
  }
  static pb::Directive Profiling(const Uuid& writer, std::int64_t interval_us) {
    pb::Directive directive;
    directive.set_writer(writer.ToBytes());
    directive.mutable_profiling()->set_on(true);
    directive.mutable_profiling()->set_interval_us(interval_us);
    return directive;
  }
  static pb::StreamChunksResponse Opened(const Uuid& writer) {
    pb::StreamChunksResponse message;
    message.mutable_opened()->set_writer(writer.ToBytes());
    return message;
  }
  void Open(const Uuid& writer) {
    board_.Expect(writer, ++generation_);
    board_.PostOpened(writer, Opened(writer));
    ASSERT_EQ(TakeAll().size(), 1U);
  }
  std::vector<pb::StreamChunksResponse> TakeAll() {
    std::vector<pb::StreamChunksResponse> taken;
    pb::StreamChunksResponse message;
    while (board_.TakeNext(message)) taken.push_back(message);
    EXPECT_TRUE(board_.empty());
    return taken;
  }

  std::atomic<bool> done_{false};
  std::atomic<int> post_count_ = 0;
  std::uint64_t generation_ = 0;
  AckBoard board_{[this] { ++post_count_; }};
  const Uuid writer_ = Uuid::Random();
};

TEST_F(AckBoardTest, WhatComesBeforeOpenedTravelsInIt) {
  board_.Expect(writer_, 1);
  EXPECT_TRUE(board_.PostDirective(writer_, 1, Sampling(writer_, true)));
  EXPECT_TRUE(board_.PostDirective(writer_, 2, Profiling(writer_, 5)));
  EXPECT_TRUE(board_.PostDirective(writer_, 3, Sampling(writer_, false)));
  EXPECT_TRUE(board_.empty());
  EXPECT_EQ(post_count_, 0);
  board_.PostOpened(writer_, Opened(writer_));
  const auto taken = TakeAll();
  ASSERT_EQ(taken.size(), 1U);
  ASSERT_EQ(taken[0].opened().directives_size(), 2);
  EXPECT_EQ(taken[0].opened().directives(0).profiling().interval_us(), 5);
  EXPECT_TRUE(taken[0].opened().directives(1).has_sampling());
  EXPECT_FALSE(taken[0].opened().directives(1).sampling().on());
}

TEST_F(AckBoardTest, TheNewestOfAKindWinsInWhateverOrderTheyCome) {
  Open(writer_);
  EXPECT_TRUE(board_.PostDirective(writer_, 7, Profiling(writer_, 70)));
  EXPECT_TRUE(board_.PostDirective(writer_, 5, Profiling(writer_, 50)));
  auto taken = TakeAll();
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].directive().profiling().interval_us(), 70);
  // Sent already, so an older one must not follow.
  EXPECT_TRUE(board_.PostDirective(writer_, 6, Profiling(writer_, 60)));
  EXPECT_TRUE(TakeAll().empty());
  EXPECT_TRUE(board_.PostDirective(writer_, 8, Profiling(writer_, 80)));
  EXPECT_EQ(TakeAll().size(), 1U);
}

TEST_F(AckBoardTest, AClientThatDoesNotReadCostsOneOfEachKind) {
  Open(writer_);
  const Uuid other = Uuid::Random();
  Open(other);
  for (std::uint64_t version = 1; version <= 100'000; version += 4) {
    board_.PostDirective(writer_, version, Sampling(writer_, version % 8 == 1));
    board_.PostDirective(writer_, version + 1, Profiling(writer_, static_cast<int>(version)));
    board_.PostDirective(other, version + 2, Sampling(other, true));
  }
  EXPECT_TRUE(board_.WaitForRoom(SteadyTime::InfinitePast())) << "they slow down nobody";
  const auto taken = TakeAll();
  ASSERT_EQ(taken.size(), 3U);
  for (const auto& message : taken) {
    if (message.directive().has_profiling()) {
      EXPECT_EQ(message.directive().profiling().interval_us(), 99'997);
    }
  }
}

TEST_F(AckBoardTest, MessagesThatNobodyTakesLeaveNoRoomByTheirNumberOrTheirBytes) {
  struct Case {
    const char* name;
    int rejections;
    bool is_opened;
    std::size_t posts_min, posts_max;
  };
  constexpr Case kCases[] = {
      {"small ones", 0, false, 512, 1024},
      {"small ones that open", 0, true, 512, 1024},
      {"large ones", 1000, false, 2, 8},
      {"large ones that open", 1000, true, 2, 8},
  };
  for (const Case& each : kCases) {
    SCOPED_TRACE(each.name);
    pb::StreamChunksResponse message = Opened(writer_);
    for (int i = 0; i < each.rejections; ++i) {
      message.mutable_opened()->add_rejections()->set_message(std::string(90, 'x'));
    }
    std::size_t posts = 0;
    for (; posts < 2000 && board_.WaitForRoom(SteadyTime::InfinitePast()); ++posts) {
      if (each.is_opened) {
        board_.Expect(writer_, ++generation_);
        board_.PostOpened(writer_, message);
      } else {
        board_.Post(message);
      }
    }
    EXPECT_GE(posts, each.posts_min);
    EXPECT_LE(posts, each.posts_max);
    // One that is taken makes room, in order.
    ASSERT_TRUE(board_.TakeNext(message));
    EXPECT_EQ(message.opened().rejections_size(), each.rejections);
    EXPECT_TRUE(board_.WaitForRoom(SteadyTime::InfinitePast()));
    EXPECT_EQ(TakeAll().size(), posts - 1);
  }
}

TEST_F(AckBoardTest, WritersThatAreNotHereAreNotDirected) {
  EXPECT_FALSE(board_.PostDirective(writer_, 1, Sampling(writer_, true)));
  Open(writer_);
  EXPECT_TRUE(board_.PostDirective(writer_, 2, Sampling(writer_, true)));
  board_.DropDirectives(writer_, generation_ - 1);
  EXPECT_FALSE(board_.empty()) << "an older one was fenced";
  board_.DropDirectives(writer_, generation_);
  EXPECT_TRUE(board_.empty());
  EXPECT_FALSE(board_.PostDirective(writer_, 3, Sampling(writer_, true)));
  board_.Close();
  board_.Expect(writer_, 1);
  EXPECT_FALSE(board_.PostDirective(writer_, 4, Sampling(writer_, true)));
}

TEST_F(AckBoardTest, GoBeforeAcksAndAfterMessages) {
  Open(writer_);
  board_.HoldAck(writer_, {.committed_sequence = 1});
  board_.PostDirective(writer_, 1, Sampling(writer_, true));
  board_.Post(pb::StreamChunksResponse());
  const auto taken = TakeAll();
  ASSERT_EQ(taken.size(), 3U);
  EXPECT_TRUE(taken[1].has_directive());
  EXPECT_TRUE(taken[2].has_ack());
}

// One call for all that a commit has for a stream, however many its writers are.
TEST(AckBoardOwnTest, AcksThatAreHeldWaitForOneCall) {
  int call_count = 0;
  AckBoard board([&] { ++call_count; });
  const Uuid writers[] = {Uuid::Random(), Uuid::Random()};
  for (const Uuid& writer : writers) board.HoldAck(writer, {.committed_sequence = 1});
  board.HoldAck(writers[0], {.committed_sequence = 2});
  EXPECT_EQ(call_count, 0);
  board.Tell();
  EXPECT_EQ(call_count, 1);
  std::set<std::uint64_t> told;
  for (pb::StreamChunksResponse message; board.TakeNext(message);) {
    told.insert(message.ack().committed_sequence());
  }
  EXPECT_EQ(told, (std::set<std::uint64_t>{1, 2}));
  board.Close();
  board.HoldAck(writers[0], {.committed_sequence = 3});
  board.Tell();
  EXPECT_EQ(call_count, 1);
  EXPECT_TRUE(board.empty());
}

// However the stream's thread and those that post meet: a client that does not know the writer yet
// would throw away what it is asked for.
TEST_F(AckBoardTest, NothingOfAWriterIsTakenBeforeItsOpened) {
  constexpr std::uint64_t kOpens = 50'000;
  std::thread poster([this] {
    for (std::uint64_t open = 1; open <= kOpens; ++open) {
      board_.Expect(writer_, open);
      pb::StreamChunksResponse opened = Opened(writer_);
      opened.mutable_opened()->set_generation(open);
      while (!board_.WaitForRoom(SteadyTime::Now() + absl::Seconds(1))) continue;
      board_.PostOpened(writer_, std::move(opened));
      board_.PostDirective(writer_, open, Profiling(writer_, static_cast<std::int64_t>(open)));
      board_.HoldAck(writer_, {.committed_sequence = open});
    }
    done_ = true;
  });
  std::uint64_t opened_count = 0;
  std::uint64_t early_count = 0;
  pb::StreamChunksResponse message;
  // What was posted before `done` was read is taken after it.
  for (bool done = false; !done || !board_.empty();) {
    done = done_;
    while (board_.TakeNext(message)) {
      if (message.has_opened()) opened_count = message.opened().generation();
      const std::uint64_t of_open =
          message.has_directive()
              ? static_cast<std::uint64_t>(message.directive().profiling().interval_us())
              : message.ack().committed_sequence();
      early_count += of_open > opened_count ? 1 : 0;
    }
  }
  poster.join();
  EXPECT_EQ(opened_count, kOpens);
  EXPECT_EQ(early_count, 0u);
}

}  // namespace
}  // namespace stepwell
