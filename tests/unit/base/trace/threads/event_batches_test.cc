// Invariant: the takers get exactly what was cut, in its order, one call at a time, and Finish() returns when they have it
// or one has failed. It must survive: a taker that fails, one that hangs while the cutter goes on, a reading that is given up.
#include "base/trace/event_batches.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/trace/trace_reading.h"
#include "tests/support/codec_vectors.h"

namespace stepwell {
namespace {

using Taken =
    std::vector<std::pair<std::string, std::string>>;  // a name (events have none), its bytes

TraceSplitter::Takers Into(Taken& taken) {
  return {.event =
              [&taken](std::string_view json) {
                taken.emplace_back("", json);
                return absl::OkStatus();
              },
          .member =
              [&taken](std::string_view name, std::string_view json) {
                taken.emplace_back(name, json);
                return absl::OkStatus();
              }};
}

// The thread by which the last event was taken; members are not wanted.
TraceSplitter::Takers NotingTheirThread(std::thread::id& by) {
  return {.event =
              [&by](std::string_view) {
                by = std::this_thread::get_id();
                return absl::OkStatus();
              },
          .member = {}};
}

TEST(EventBatchesTest, HandsOnAllInItsOrderWhateverItsSize) {
  const std::uint64_t seed = testing::TestSeed();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  Taken cut, taken;
  EventBatches batches(Into(taken));
  const TraceSplitter::Takers gathered = batches.Gathered();
  // Many batches, each of some events; some events are larger than a batch by themselves.
  for (int i = 0; i < 20'000; ++i) {
    const std::size_t size = random() % 1000 == 0 ? 3 * EventBatches::kBatchBytes : random() % 500;
    const std::string json(size, static_cast<char>('a' + i % 26));
    const std::string name = random() % 50 == 0 ? absl::StrCat("member", i) : "";
    cut.emplace_back(name, json);
    const absl::Status status = name.empty() ? gathered.event(json) : gathered.member(name, json);
    ASSERT_TRUE(status.ok()) << status;
  }
  ASSERT_TRUE(batches.Finish().ok());
  ASSERT_EQ(cut.size(), taken.size());
  for (std::size_t i = 0; i < cut.size(); ++i) ASSERT_EQ(cut[i], taken[i]) << i;
}

TEST(EventBatchesTest, WhatIsSmallIsTakenWithoutAThread) {
  std::thread::id by;
  EventBatches batches(NotingTheirThread(by));
  const TraceSplitter::Takers gathered = batches.Gathered();
  EXPECT_FALSE(gathered.member);  // who wants none is told none
  ASSERT_TRUE(gathered.event("{}").ok());
  EXPECT_EQ(std::thread::id(), by);
  ASSERT_TRUE(batches.Finish().ok());
  EXPECT_EQ(std::this_thread::get_id(), by);
}

TEST(EventBatchesTest, AFailureIsWhatTheCutterHearsAndNothingIsTakenBehindIt) {
  int taken = 0;
  EventBatches batches({.event =
                            [&taken](std::string_view) {
                              return ++taken == 3 ? absl::ResourceExhaustedError("no room")
                                                  : absl::OkStatus();
                            },
                        .member = {}});
  const TraceSplitter::Takers gathered = batches.Gathered();
  const std::string json(EventBatches::kBatchBytes, 'x');
  absl::Status heard;
  // What waits, what is being taken, what is being gathered: more can not be cut before the third has failed.
  for (std::size_t i = 0; heard.ok() && i < 2 * EventBatches::kBatchesMax + 5; ++i) {
    heard = gathered.event(json);
  }
  EXPECT_EQ(absl::ResourceExhaustedError("no room"), heard);
  EXPECT_EQ(absl::ResourceExhaustedError("no room"), batches.Finish());
  EXPECT_EQ(3, taken);
}

TEST(EventBatchesTest, AFailureOfTheLastIsToldAtTheEnd) {
  EventBatches batches({.event =
                            [](std::string_view json) {
                              return json == "last" ? absl::InternalError("the last")
                                                    : absl::OkStatus();
                            },
                        .member = {}});
  const TraceSplitter::Takers gathered = batches.Gathered();
  ASSERT_TRUE(gathered.event(std::string(EventBatches::kBatchBytes, 'x')).ok());
  ASSERT_TRUE(gathered.event("last").ok());
  EXPECT_EQ(absl::InternalError("the last"), batches.Finish());
}

TEST(EventBatchesTest, WhoCutsWaitsForATakerThatHangs) {
  absl::Notification goes_on;
  std::atomic<std::size_t> cut = 0;
  std::size_t taken = 0;
  EventBatches batches({.event =
                            [&](std::string_view) {
                              goes_on.WaitForNotification();
                              ++taken;
                              return absl::OkStatus();
                            },
                        .member = {}});
  constexpr std::size_t kEvents = 50;
  std::thread cutter([&] {
    const TraceSplitter::Takers gathered = batches.Gathered();
    const std::string json(EventBatches::kBatchBytes, 'x');
    for (std::size_t i = 0; i < kEvents; ++i, ++cut) ASSERT_TRUE(gathered.event(json).ok());
    ASSERT_TRUE(batches.Finish().ok());
  });
  // One is being taken, so many wait, and the next one is held back.
  while (cut < EventBatches::kBatchesMax + 1) std::this_thread::yield();
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  EXPECT_EQ(EventBatches::kBatchesMax + 1, cut);
  goes_on.Notify();
  cutter.join();
  EXPECT_EQ(kEvents, taken);
}

// How many of those that wait are taken by one that is given up while the first is.
int TakenOfGivenUp() {
  absl::Notification begun, goes_on;
  int taken = 0;
  auto batches =
      std::make_unique<EventBatches>(TraceSplitter::Takers{.event =
                                                               [&](std::string_view) {
                                                                 if (taken++ == 0) begun.Notify();
                                                                 goes_on.WaitForNotification();
                                                                 return absl::OkStatus();
                                                               },
                                                           .member = {}});
  const TraceSplitter::Takers gathered = batches->Gathered();
  for (std::size_t i = 0; i < EventBatches::kBatchesMax; ++i) {
    EXPECT_TRUE(gathered.event(std::string(EventBatches::kBatchBytes, 'x')).ok());
  }
  begun.WaitForNotification();
  std::thread ending([&] { batches.reset(); });
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  goes_on.Notify();
  ending.join();
  return taken;
}

TEST(EventBatchesTest, OneThatIsGivenUpTakesNoneOfThoseThatWait) {
  // On a busy machine that thread may not have said so by then; one that took them all never would.
  int taken = TakenOfGivenUp();
  for (int tries = 1; tries < 100 && taken > 1; ++tries) taken = TakenOfGivenUp();
  EXPECT_EQ(1, taken);
}

TEST(EventBatchesTest, WhatATakerThrowsIsAStatus) {
  EventBatches batches({.event = [](std::string_view json) -> absl::Status {
                          if (json == "none") throw std::bad_alloc();
                          return absl::OkStatus();
                        },
                        .member = {}});
  const TraceSplitter::Takers gathered = batches.Gathered();
  ASSERT_TRUE(gathered.event(std::string(EventBatches::kBatchBytes, 'x')).ok());
  ASSERT_TRUE(gathered.event("none").ok());
  EXPECT_TRUE(absl::IsResourceExhausted(batches.Finish()));
}

// As many as fit by their bytes alone would be megabytes of places.
TEST(EventBatchesTest, EventsOfNoBytesFillABatch) {
  std::thread::id by;
  EventBatches batches(NotingTheirThread(by));
  const TraceSplitter::Takers gathered = batches.Gathered();
  for (std::size_t i = 0; i < EventBatches::kBatchBytes; ++i) ASSERT_TRUE(gathered.event("").ok());
  ASSERT_TRUE(batches.Finish().ok());
  EXPECT_NE(std::this_thread::get_id(), by) << "a batch was full";
}

// Through all of a reading: a source that breaks off has handed on what it had.
TEST(EventBatchesTest, ASourceThatFailsHasHandedOnWhatCameBefore) {
  constexpr int kEvents = 20'000;
  const TraceSource source = [](const TakeBytes& take) -> absl::Status {
    std::string bytes = "[";
    for (int i = 0; i < kEvents; ++i) {
      absl::StrAppend(&bytes, i == 0 ? "" : ",", R"({"ph":"i","ts":)", i, R"(,"pid":1,"tid":1})");
    }
    if (absl::Status status = take(bytes); !status.ok()) return status;
    return absl::DataLossError("the disk");
  };
  int taken = 0;
  const auto form = ReadTrace(source, {.event =
                                           [&taken](std::string_view) {
                                             ++taken;
                                             return absl::OkStatus();
                                           },
                                       .member = {}});
  EXPECT_EQ(absl::DataLossError("the disk"), form.status());
  EXPECT_EQ(kEvents, taken);
}

}  // namespace
}  // namespace stepwell
