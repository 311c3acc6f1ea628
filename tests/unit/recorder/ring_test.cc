#include "client/recorder/src/ring.h"

#include <gtest/gtest.h>

#include <thread>

namespace stepwell::recorder {
namespace {

using spool::Event;
using spool::EventKind;

constexpr std::uint32_t kCapacity = 256;
constexpr std::uint64_t kRoom = kCapacity - RingProducer::kStepReserve;

class RingTest : public testing::Test {
 protected:
  RingTest() { producer_.Attach(ring_.get()); }

  bool PushScope(std::uint64_t time) { return producer_.Push(At(time, EventKind::kScope)); }
  bool PushStep(std::uint64_t time) { return producer_.Push(At(time, EventKind::kStepEnd)); }
  static Event At(std::uint64_t time, EventKind kind) {
    return {.time = time,
            .value = 2 * time,
            .name = 3,
            .batch = 4,
            .kind = kind,
            .flags = spool::kInStep,
            .depth = 5,
            .stamp = 0};
  }
  std::uint64_t head() { return ring_->header().head.load(); }
  void SetTail(std::uint64_t tail) { ring_->header().tail.store(tail); }

  std::unique_ptr<Ring> ring_ = Ring::MapAnonymous(
      {.capacity = kCapacity, .ring = 7, .thread = 2, .created_ns = 9, .thread_name = "loader"});
  RingProducer producer_;
};

TEST_F(RingTest, SaysWhatItIs) {
  const spool::RingHeader& header = ring_->header();
  EXPECT_EQ(std::string(header.magic, sizeof(header.magic)), "SWELLRG1");
  EXPECT_EQ(header.format_version, spool::kFormatVersion);
  EXPECT_EQ(header.capacity, kCapacity);
  EXPECT_EQ(header.ring, 7u);
  EXPECT_EQ(header.thread, 2u);
  EXPECT_EQ(header.previous, spool::kNoRing);
  EXPECT_EQ(header.next_ring, spool::kNoRing);
  EXPECT_EQ(header.state, spool::kRingLive);
  EXPECT_STREQ(header.thread_name, "loader");
  EXPECT_TRUE(ring_->IsDrained());
}

TEST_F(RingTest, KeepsEveryFieldOfAnEventAndStampsIt) {
  ASSERT_TRUE(PushScope(11));
  const Event& event = ring_->events()[0];
  EXPECT_EQ(event.time, 11u);
  EXPECT_EQ(event.value, 22u);
  EXPECT_EQ(event.name, 3u);
  EXPECT_EQ(event.batch, 4);
  EXPECT_EQ(event.kind, EventKind::kScope);
  EXPECT_EQ(event.flags, spool::kInStep);
  EXPECT_EQ(event.depth, 5u);
  EXPECT_EQ(event.stamp, 1u);
  EXPECT_EQ(head(), 1u);
}

TEST_F(RingTest, AgentRule01_RefusesWhenFullAndTakesAgainWhenDrained) {
  for (std::uint64_t i = 0; i < kRoom; ++i) ASSERT_TRUE(PushScope(i));
  EXPECT_FALSE(PushScope(999));
  EXPECT_EQ(head(), kRoom);
  SetTail(10);
  for (std::uint64_t i = 0; i < 10; ++i) EXPECT_TRUE(PushScope(1000 + i));
  EXPECT_FALSE(PushScope(999));
}

TEST_F(RingTest, KeepsTheLastSlotsForSteps) {
  while (PushScope(1)) {
  }
  for (std::uint64_t i = 0; i < RingProducer::kStepReserve; ++i) ASSERT_TRUE(PushStep(i));
  EXPECT_FALSE(PushStep(1));
  EXPECT_EQ(head(), kCapacity);
}

TEST_F(RingTest, AgentRule01_CountsDropsWithTheirTimes) {
  producer_.CountDrop(100);
  producer_.CountDrop(200);
  EXPECT_EQ(ring_->header().dropped, 2u);
  EXPECT_EQ(ring_->header().dropped_first_ns, 100u);
  EXPECT_EQ(ring_->header().dropped_last_ns, 200u);
}

TEST_F(RingTest, WrapsAndStampsByPosition) {
  for (std::uint64_t i = 0; i < 5 * kCapacity; ++i) {
    ASSERT_TRUE(PushScope(i));
    SetTail(i + 1);
  }
  for (std::uint64_t i = 4 * kCapacity; i < 5 * kCapacity; ++i) {
    EXPECT_EQ(ring_->events()[i % kCapacity].time, i);
    EXPECT_EQ(ring_->events()[i % kCapacity].stamp, i + 1);
  }
}

TEST_F(RingTest, DoesNotBelieveATailThatMakesNoSense) {
  for (std::uint64_t i = 0; i < kRoom; ++i) ASSERT_TRUE(PushScope(i));
  for (const std::uint64_t tail : {head() + 1, ~std::uint64_t{0}}) {
    SetTail(tail);
    EXPECT_FALSE(PushScope(1)) << tail;
  }
  SetTail(100);
  EXPECT_TRUE(PushScope(1));
  SetTail(50);  // going back
  for (int i = 0; i < 99; ++i) EXPECT_TRUE(PushScope(1));
  EXPECT_FALSE(PushScope(1));
}

TEST_F(RingTest, RefusesEverythingWithoutARing) {
  producer_.Attach(nullptr);
  EXPECT_FALSE(PushScope(1));
  EXPECT_FALSE(PushStep(1));
}

TEST_F(RingTest, AReaderSeesEveryEventOnceAndWhole) {
  constexpr std::uint64_t kCount = 200'000;
  std::thread reader([this] {
    std::uint64_t tail = 0;
    while (tail < kCount) {
      const std::uint64_t end = ring_->header().head.load(std::memory_order_acquire);
      for (; tail < end; ++tail) {
        const Event& event = ring_->events()[tail % kCapacity];
        ASSERT_EQ(event.time, tail);
        ASSERT_EQ(event.value, 2 * tail);
        ASSERT_EQ(event.stamp, static_cast<std::uint32_t>(tail + 1));
      }
      ring_->header().tail.store(tail, std::memory_order_release);
      std::this_thread::yield();
    }
  });
  for (std::uint64_t i = 0; i < kCount;) {
    if (PushScope(i)) {
      ++i;
    } else {
      std::this_thread::yield();
    }
  }
  reader.join();
  EXPECT_TRUE(ring_->IsDrained());
}

}  // namespace
}  // namespace stepwell::recorder
