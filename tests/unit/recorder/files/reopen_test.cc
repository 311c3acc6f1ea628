// A recorder that is opened and closed many times, as a training does that is switched on and off.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "client/recorder/src/gate.h"
#include "client/recorder/src/runtime.h"
#include "client/recorder/src/spool_format.h"
#include "tests/unit/recorder/files/in_child.h"
#include "tests/unit/recorder/files/recorder_fixture.h"

namespace stepwell::recorder {
namespace {

std::ptrdiff_t DescriptorCount() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

std::ptrdiff_t MappingCount() {
  std::ifstream maps("/proc/self/maps");
  return std::count(std::istreambuf_iterator<char>(maps), {}, '\n');
}

// A thread that records when it is told to, and lives on.
class Recording {
 public:
  ~Recording() {
    Tell(0);
    thread_.join();
  }
  void Once() {
    const int wanted = Tell(1);
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return count_ == wanted; });
  }

 private:
  int Tell(int more) {
    const std::lock_guard lock(mutex_);
    wanted_ = more == 0 ? -1 : wanted_ + more;
    asked_.notify_one();
    return wanted_;
  }
  void Run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      asked_.wait(lock, [this] { return wanted_ != count_; });
      if (wanted_ < 0) return;
      Scoped("elsewhere");
      ++count_;
      done_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable asked_, done_;
  int wanted_ = 0, count_ = 0;
  std::thread thread_{[this] { Run(); }};
};

TEST_F(RecorderTest, ClosedWritersLeaveNothingBehind) {
  ExpectInChild([this] {
    const auto window = [this] {
      ASSERT_EQ(Open(), STEPWELL_RECORDING) << stepwell_message();
      Scoped("forward");
      std::thread(Scoped, "worker").join();
      (void)stepwell_close(0);
    };
    for (int warm = 0; warm < 3; ++warm) window();
    const std::ptrdiff_t descriptors = DescriptorCount();
    const std::ptrdiff_t mappings = MappingCount();
    const std::size_t bytes = mallinfo2().uordblks;
    constexpr int kRounds = 40;
    for (int round = 0; round < kRounds; ++round) window();
    EXPECT_LE(DescriptorCount(), descriptors);
    // Allocators map a region now and then (AddressSanitizer's most of all); a window that left one
    // mapping behind would leave kRounds.
    EXPECT_LE(MappingCount(), mappings + kRounds / 2);
    // A writer has 66 KiB. Spool directories' names are kept nowhere.
    EXPECT_LE(mallinfo2().uordblks, bytes + kRounds * 8192);
  });
}

TEST_F(RecorderTest, WhatComesOnceItIsSwitchedOffIsNoLoss) {
  ExpectInChild([this] {
    for (const auto begin : {stepwell_switch_off_begin, stepwell_close_begin}) {
      ASSERT_EQ(Open(), STEPWELL_RECORDING) << stepwell_message();
      Scoped("forward");
      stepwell_closing* closing = begin();
      ASSERT_NE(closing, nullptr);
      for (int i = 0; i < 5; ++i) Scoped("forward");
      EXPECT_EQ(stepwell_dropped_count(), begin == stepwell_close_begin ? 5U : 0U);
      stepwell_close_end(closing);
    }
  });
}

// Of a thread that looked while recording was on, and had nothing recorded before.
TEST_F(RecorderTest, AFirstCallThatASwitchOffOvertakesIsNoLoss) {
  ExpectInChild([this] {
    for (const auto begin : {stepwell_switch_off_begin, stepwell_close_begin}) {
      ASSERT_EQ(Open(), STEPWELL_RECORDING) << stepwell_message();
      const std::uint32_t generation = Gate::Generation(*stepwell_gate);
      stepwell_closing* closing = begin();
      ASSERT_NE(closing, nullptr);
      std::thread([generation] {
        ThreadSlot slot{nullptr, 0};
        EXPECT_EQ(Runtime::Get().StartThread(slot, generation), nullptr);
      }).join();
      EXPECT_EQ(stepwell_dropped_count(), begin == stepwell_close_begin ? 1U : 0U);
      stepwell_close_end(closing);
    }
  });
}

TEST_F(RecorderTest, ClosingsThatAreEasedHoldAPageAndAreToldOfWhenTheirFilesAreGone) {
  ExpectInChild([this] {
    std::vector<stepwell_closing*> left;
    const auto window = [&] {
      ASSERT_EQ(Open(), STEPWELL_RECORDING) << stepwell_message();
      Scoped("forward");
      left.push_back(stepwell_close_begin());
      ASSERT_NE(left.back(), nullptr);
      stepwell_close_ease(left.back());
      stepwell_close_ease(left.back());
    };
    constexpr int kRounds = 40;
    left.reserve(kRounds + 3);
    for (int warm = 0; warm < 3; ++warm) window();
    const std::ptrdiff_t descriptors = DescriptorCount();
    const std::ptrdiff_t mappings = MappingCount();
    const std::size_t bytes = mallinfo2().uordblks;
    for (int round = 0; round < kRounds; ++round) window();
    EXPECT_LE(DescriptorCount(), descriptors);
#ifdef __SANITIZE_THREAD__
    constexpr int kMappings = 3;  // each page with its shadow and what is known of it
#else
    constexpr int kMappings = 1;
#endif
    EXPECT_LE(MappingCount(), mappings + kMappings * kRounds + kRounds / 2);
    EXPECT_LE(mallinfo2().uordblks, bytes + kRounds * 8192);

    // As an agent does it: of all but the first one, and one that is refused.
    const auto writers = FindWriters(directory_.path());
    ASSERT_EQ(writers.size(), left.size());
    const auto tell = [](const std::filesystem::path& writer, spool::AgentState state) {
      std::fstream header(writer / spool::kHeaderFile,
                          std::ios::in | std::ios::out | std::ios::binary);
      header.seekp(offsetof(spool::WriterHeader, agent_state));
      header.write(reinterpret_cast<const char*>(&state), sizeof(state));
    };
    for (const auto& writer : writers) tell(writer, spool::kAgentServing);
    for (stepwell_closing* one : left) EXPECT_EQ(stepwell_close_await(one, 0), 0);
    tell(writers[0], spool::kAgentRefused);
    for (std::size_t i = 2; i < writers.size(); ++i) tell(writers[i], spool::kAgentAcked);
    for (const auto& writer : writers) std::filesystem::remove_all(writer);
    std::map<int, std::size_t> told;
    for (stepwell_closing* one : left) ++told[stepwell_close_await(one, 0)];
    EXPECT_EQ(told, (std::map<int, std::size_t>{{-1, 1}, {0, 1}, {1, left.size() - 2}}));
    const pid_t child = fork();
    if (child == 0) {
      const bool is_parents = stepwell_close_await(left.back(), 60'000) == -1;
      for (stepwell_closing* one : left) stepwell_close_ease(one);
      for (stepwell_closing* one : left) stepwell_close_end(one);
      _exit(is_parents ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    for (stepwell_closing* one : left) stepwell_close_end(one);
    stepwell_close_ease(nullptr);
  });
}

TEST_F(RecorderTest, AnyThreadMayAskOfAClosingWhileItIsEased) {
  ExpectInChild([this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING) << stepwell_message();
    Scoped("forward");
    stepwell_closing* closing = stepwell_close_begin();
    std::vector<std::thread> asking;
    for (int i = 0; i < 4; ++i) {
      asking.emplace_back([=] { EXPECT_EQ(stepwell_close_await(closing, 50), 0); });
    }
    stepwell_close_ease(closing);
    for (std::thread& one : asking) one.join();
    stepwell_close_end(closing);
  });
}

TEST_F(RecorderTest, AThreadMayHoldTheRingOfAWriterThatClosedLongAgo) {
  ExpectInChild([this] {
    Recording idle;
    for (int round = 0; round < 10; ++round) {
      ASSERT_EQ(Open(), STEPWELL_RECORDING) << stepwell_message();
      Scoped("forward");
      if (round % 4 == 0) idle.Once();
      EXPECT_EQ(stepwell_dropped_count(), 0u);
      (void)stepwell_close(0);
      idle.Once();  // too late for the writer that it recorded in, if that was this one
    }
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    idle.Once();
    EXPECT_EQ(stepwell_dropped_count(), 0u);
    (void)stepwell_close(0);
  });
}

TEST_F(RecorderTest, ACloseInPartsHoldsNobodyUp) {
  ExpectInChild([this] {
    EXPECT_EQ(stepwell_close_begin(), nullptr);
    ASSERT_EQ(Open(), STEPWELL_RECORDING) << stepwell_message();
    Scoped("first");
    stepwell_closing* closing = stepwell_close_begin();
    ASSERT_NE(closing, nullptr);
    EXPECT_EQ(stepwell_current_state(), STEPWELL_CLOSED);
    ASSERT_EQ(Open(), STEPWELL_RECORDING) << stepwell_message();
    EXPECT_EQ(stepwell_close_await(closing, 1), 0) << "nobody was there to take it";
    Scoped("second");
    const pid_t child = fork();
    if (child == 0) {
      const bool is_parents = stepwell_close_await(closing, 60'000) == -1;
      stepwell_close_end(closing);
      _exit(is_parents ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(stepwell_close_await(closing, 60'000), -1) << "no agent comes";
    stepwell_close_end(closing);
    stepwell_close_end(nullptr);
    EXPECT_EQ(stepwell_close_await(nullptr, 0), -1);
    EXPECT_EQ(stepwell_dropped_count(), 0u);
    EXPECT_EQ(stepwell_close(0), 0);
  });
}

}  // namespace
}  // namespace stepwell::recorder
