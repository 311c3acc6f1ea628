// Ends of processes that record: exits and kills, each case in a process of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "stepwell/recorder.h"
#include "stepwell/stepwell.h"
#include "tests/unit/recorder/files/in_child.h"
#include "tests/unit/recorder/files/recorder_fixture.h"
#include "tests/unit/recorder/files/spool_files.h"

namespace stepwell::recorder {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

// What is recorded is outside the process already: a signal needs no handler of ours.
TEST_F(RecorderTest, AgentRule10_NoSignalIsTaken) {
  ExpectInChild([this] {
    const auto dispositions = [] {
      std::vector<std::string> all;
      for (int number = 1; number < SIGRTMAX; ++number) {
        struct sigaction action {};
        // Two are the C library's own.
        if (sigaction(number, nullptr, &action) != 0) continue;
        all.push_back(std::to_string(number) + " " +
                      std::to_string(reinterpret_cast<std::uintptr_t>(action.sa_handler)) + " " +
                      std::to_string(action.sa_flags));
      }
      return all;
    };
    const auto blocked = [] {
      sigset_t mask;
      pthread_sigmask(SIG_SETMASK, nullptr, &mask);
      std::vector<int> all;
      for (int number = 1; number < SIGRTMAX; ++number) {
        if (sigismember(&mask, number) == 1) all.push_back(number);
      }
      return all;
    };
    const auto before = dispositions();
    const auto blocked_before = blocked();
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    EXPECT_EQ(dispositions(), before);
    Scoped("a");
    stepwell_step_begin();
    stepwell_step_end(STEPWELL_NEXT_BATCH);
    EXPECT_EQ(dispositions(), before);
    stepwell_close(0);
    EXPECT_EQ(dispositions(), before);
    EXPECT_EQ(blocked(), blocked_before);
  });
}

TEST_F(RecorderTest, AgentRule10_LeavingMainClosesWhatIsOpen) {
  const int status = RunInChild([this] {
    setenv("STEPWELL_EXIT_WAIT", "0", 1);
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    Scoped("a");
    std::exit(7);
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  SpoolFiles files(WriterPath());
  EXPECT_EQ(files.header().state, spool::kWriterClosed);
  EXPECT_THAT(files.Lines(), ElementsAre("scope a"));
}

TEST_F(RecorderTest, AgentRule10_AnExitWaitsForTheAckAsLongAsItIsTold) {
  const struct {
    const char* name;
    const char* wait;
    bool is_acked;
    milliseconds least, most;
  } rows[] = {
      {"acked", "60", true, milliseconds(0), milliseconds(5000)},
      {"not acked", "0.4", false, milliseconds(400), milliseconds(4000)},
      {"no wait", "0", false, milliseconds(0), milliseconds(2000)},
      {"five seconds", "", false, milliseconds(5000), milliseconds(9000)},
      {"no number", "soon", false, milliseconds(5000), milliseconds(9000)},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const auto begin = std::chrono::steady_clock::now();
    const int status = RunInChild([&] {
      setenv("STEPWELL_EXIT_WAIT", row.wait, 1);
      ASSERT_EQ(Open(), STEPWELL_RECORDING);
      for (const auto& writer : FindWriters(directory_.path())) {
        SpoolFiles files(writer);
        files.header().agent_state = spool::kAgentServing;
        if (!row.is_acked) continue;
        std::thread([writer] {
          SpoolFiles watched(writer);
          while (watched.header().state != spool::kWriterClosed) std::this_thread::yield();
          watched.header().agent_state = spool::kAgentAcked;
        }).detach();
      }
      std::exit(0);
    });
    const auto took = std::chrono::steady_clock::now() - begin;
    EXPECT_EQ(status, 0);
    EXPECT_GE(took, row.least);
    EXPECT_LE(took, row.most);
  }
}

TEST_F(RecorderTest, ThreadsThatRecordDuringTheExitDoNoHarm) {
  for (int round = 0; round < 10; ++round) {
    const int status = RunInChild([this] {
      setenv("STEPWELL_EXIT_WAIT", "0", 1);
      ASSERT_EQ(Open(), STEPWELL_RECORDING);
      static std::atomic<int> begun{0};
      for (int t = 0; t < 3; ++t) {
        std::thread([t] {
          for (;; ++begun) {
            Scoped("a");
            stepwell_step_end(STEPWELL_NEXT_BATCH);
            // Threads that begin and end during the exit, too.
            if (t > 0) continue;
            std::atomic<bool> is_done{false};
            std::thread([&is_done] {
              Scoped("b");
              is_done = true;
            }).detach();
            while (!is_done) std::this_thread::yield();
          }
        }).detach();
      }
      while (begun < 20) std::this_thread::yield();
      std::exit(0);
    });
    EXPECT_EQ(status, 0) << "ended by signal " << WTERMSIG(status);
  }
  for (const auto& writer : FindWriters(directory_.path())) {
    EXPECT_EQ(SpoolFiles(writer).header().state, spool::kWriterClosed);
  }
}

TEST_F(RecorderTest, AForkedChildThatExitsLeavesItsParentsWriterOpen) {
  ExpectInChild([this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    EXPECT_EQ(RunInChild([] { std::exit(0); }), 0);
    EXPECT_EQ(SpoolFiles(WriterPath()).header().state, spool::kWriterOpen);
  });
}

TEST_F(RecorderTest, AForkedChildMayOpenItsOwn) {
  ExpectInChild([this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    Scoped("parent");
    const auto parent = WriterPath();
    ExpectInChild([&] {
      ASSERT_EQ(Open(), STEPWELL_RECORDING);
      Scoped("child");
      for (const auto& writer : FindWriters(directory_.path())) {
        EXPECT_THAT(SpoolFiles(writer).Lines(),
                    ElementsAre(writer == parent ? "scope parent" : "scope child"));
      }
      stepwell_close(0);
    });
    EXPECT_EQ(SpoolFiles(parent).header().state, spool::kWriterOpen);
  });
}

TEST_F(RecorderTest, AgentRule01_WhatAKilledProcessRecordedIsReadable) {
  constexpr int kSteps = 500;
  const int status = RunInChild([this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    const stepwell_series_id numbered =
        stepwell_define_series("training", "number", "1", STEPWELL_GAUGE, nullptr, 0);
    for (int i = 0; i <= kSteps; ++i) {
      stepwell_step_end(STEPWELL_NEXT_BATCH);
      stepwell_record(numbered, i);
      Scoped("a");
    }
    raise(SIGKILL);
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  SpoolFiles files(WriterPath());
  EXPECT_FALSE(files.IsAlive());
  EXPECT_EQ(files.header().state, spool::kWriterOpen);
  EXPECT_EQ(spool::BatchOfLastStep(files.header().last_step), kSteps - 1);
  int number = 0;
  for (const spool::Event& event : files.ReadRing(0).events) {
    if (event.kind != spool::EventKind::kRecord) continue;
    EXPECT_EQ(std::bit_cast<double>(event.value), number);
    ++number;
  }
  EXPECT_EQ(number, kSteps + 1);
  EXPECT_THAT(ReadText(WriterPath() / "writer.json"), HasSubstr("\"trial\": \"t\""));
}

}  // namespace
}  // namespace stepwell::recorder
