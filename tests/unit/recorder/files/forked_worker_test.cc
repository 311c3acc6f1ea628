// Forked children that record: workers of their parent's writer, as another process sees their files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "stepwell/recorder.h"
#include "tests/unit/recorder/files/in_child.h"
#include "tests/unit/recorder/files/recorder_fixture.h"

namespace stepwell::recorder {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class ForkedWorkerTest : public RecorderTest {
 protected:
  // Names of the workers' directories.
  std::vector<std::string> Workers() {
    std::vector<std::string> workers;
    for (const auto& entry : fs::directory_iterator(WriterPath())) {
      const std::string name = entry.path().filename();
      if (name.size() > 1 && name[0] == 'w' && entry.is_directory()) workers.push_back(name);
    }
    return workers;
  }
  std::vector<std::string> LinesOf(const std::string& worker) {
    return SpoolFiles(WriterPath() / worker).Lines();
  }
  // As a process that holds nothing of it sees it.
  bool IsAlive(std::uint32_t worker) {
    const int status = RunInChild(
        [&] { _exit(SpoolFiles(WriterPath()).IsLocked(spool::WorkerLockByte(worker)) ? 10 : 11); });
    return WEXITSTATUS(status) == 10;
  }
};

// A child is given another parent while threads of the old one still let go of its files and locks;
// who has been reaped holds none.
void WaitUntilReaped(pid_t process) {
  while (kill(process, 0) == 0) std::this_thread::yield();
}

stepwell_series_id Number() {
  return stepwell_define_series("training", "number", "1", STEPWELL_GAUGE, nullptr, 0);
}

TEST_F(ForkedWorkerTest, AgentRule11_AChildThatRecordsIsAWorkerOfItsParent) {
  ExpectInChild([this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    const stepwell_series_id number = Number();
    (void)stepwell_define_series("training", "unused", "1", STEPWELL_GAUGE, nullptr, 0);
    Scoped("parent");
    ExpectInChild([&] {
      EXPECT_EQ(stepwell_enabled(), 1);
      EXPECT_EQ(stepwell_current_state(), STEPWELL_RECORDING);
      EXPECT_STREQ(stepwell_message(), "");
      errno = 4711;
      stepwell_record(number, 1);
      EXPECT_EQ(errno, 4711);
      Scoped("child");
      stepwell_record(number, 2);
      EXPECT_EQ(stepwell_dropped_count(), 0u);
      EXPECT_TRUE(IsAlive(0));
      EXPECT_FALSE(IsAlive(1));
    });
    EXPECT_THAT(Workers(), ElementsAre("w0-0"));
    EXPECT_FALSE(IsAlive(0));
    EXPECT_THAT(LinesOf("w0-0"), ElementsAre("record training/number@-1", "scope child",
                                             "record training/number@-1"));
    SpoolFiles worker(WriterPath() / "w0-0");
    EXPECT_EQ(worker.Names().size(), 2u);  // what it used
    EXPECT_EQ(worker.ReadRing(0).header().worker, 0u);
    EXPECT_EQ(worker.header().state, spool::kWriterOpen);
    // The parent's is as if there had been no child.
    Scoped("parent");
    EXPECT_THAT(Lines(), ElementsAre("scope parent", "scope parent"));
    EXPECT_EQ(SpoolFiles(WriterPath()).header().state, spool::kWriterOpen);
  });
}

TEST_F(ForkedWorkerTest, AgentRule11_AChildThatDoesNotRecordLeavesNoTrace) {
  ExpectInChild([this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    Scoped("parent");
    ExpectInChild([this] {
      (void)stepwell_define_scope("child");
      EXPECT_EQ(stepwell_current_state(), STEPWELL_RECORDING);
      EXPECT_EQ(std::distance(fs::directory_iterator("/proc/self/task"), {}), 1);
      EXPECT_FALSE(IsAlive(0));
    });
    EXPECT_EQ(RunInChild([] { std::exit(0); }), 0);
    EXPECT_THAT(Workers(), IsEmpty());
    EXPECT_EQ(SpoolFiles(WriterPath()).header().state, spool::kWriterOpen);
  });
}

TEST_F(ForkedWorkerTest, AgentRule11_AnIndexIsGivenAgainWhenItsWorkerIsDead) {
  ExpectInChild([this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    Number();
    const auto record = [] { stepwell_record(Number(), 1); };
    ExpectInChild([&] {
      record();
      // A worker's own child takes the next one of the same writer.
      ExpectInChild([&] {
        record();
        EXPECT_TRUE(IsAlive(1));
      });
    });
    EXPECT_THAT(Workers(), UnorderedElementsAre("w0-0", "w1-0"));
    ExpectInChild(record);
    EXPECT_THAT(Workers(), UnorderedElementsAre("w0-0", "w0-1", "w1-0"));
    // Above all that are there, be the lower ones gone: a higher one tells that the lower is dead.
    fs::remove_all(WriterPath() / "w0-0");
    ExpectInChild(record);
    EXPECT_THAT(Workers(), UnorderedElementsAre("w0-1", "w0-2", "w1-0"));
  });
}

// Each keeps most of a MiB until an agent comes.
TEST_F(ForkedWorkerTest, AgentRule11_WhereNoAgentComesWorkersDoNotFillTheDisk) {
  ExpectInChild([this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    Number();
    for (int n = 0; n < 64; ++n) fs::create_directory(WriterPath() / ("w0-" + std::to_string(n)));
    ExpectInChild([] {
      stepwell_record(Number(), 1);
      EXPECT_STREQ(
          stepwell_message(),
          "cannot join the writer of the process it was forked from: no agent has come for "
          "its earlier workers");
    });
    EXPECT_EQ(Workers().size(), 64u);
    EXPECT_EQ(SpoolFiles(WriterPath()).header().dropped_no_ring, 1u);
  });
}

TEST_F(ForkedWorkerTest, AgentRule11_ThreadsOfAChildJoinOnce) {
  for (int round = 0; round < 5; ++round) {
    ExpectInChild([this] {
      ASSERT_EQ(Open(), STEPWELL_RECORDING);
      ExpectInChild([] {
        std::vector<std::thread> threads;
        for (int i = 0; i < 4; ++i) threads.emplace_back([] { Scoped("a"); });
        for (std::thread& thread : threads) thread.join();
        EXPECT_EQ(stepwell_dropped_count(), 0u);
        stepwell_close(0);
      });
      EXPECT_THAT(Workers(), ElementsAre("w0-0"));
      EXPECT_EQ(LinesOf("w0-0").size(), 4u);
      fs::remove_all(WriterPath());
    });
  }
}

TEST_F(ForkedWorkerTest, AgentRule11_ARawCloneWithoutHandlersRecordsNothing) {
  ExpectInChild([this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    Scoped("parent");
    const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
    if (child == 0) {
      Scoped("parent");
      stepwell_step_end(1);
      _exit(stepwell_enabled());
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_THAT(Workers(), IsEmpty());
    EXPECT_THAT(Lines(), ElementsAre("scope parent"));
  });
}

TEST_F(ForkedWorkerTest, AgentRule11_AScopeThatIsOpenAtTheForkIsTheParents) {
  ExpectInChild([this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    stepwell_step_begin();
    stepwell_scope scope;
    stepwell_scope_begin(&scope, stepwell_define_scope("around"));
    ExpectInChild([&] {
      Scoped("child");
      stepwell_scope_end(&scope);
    });
    stepwell_scope_end(&scope);
    EXPECT_THAT(LinesOf("w0-0"), ElementsAre("scope child"));
    EXPECT_THAT(Lines(), ElementsAre("begin", "scope+ around"));
  });
}

TEST_F(ForkedWorkerTest, AgentRule11_AWorkerClosesItsOwnPart) {
  ExpectInChild([this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    ExpectInChild([this] {
      Scoped("child");
      EXPECT_EQ(Open(), STEPWELL_RECORDING);  // has one
      EXPECT_EQ(stepwell_close(0), 0);
      EXPECT_EQ(stepwell_current_state(), STEPWELL_CLOSED);
      EXPECT_FALSE(IsAlive(0));
      Scoped("late");
    });
    EXPECT_EQ(FindWriters(directory_.path()).size(), 1u);
    EXPECT_THAT(LinesOf("w0-0"), ElementsAre("scope child"));
    EXPECT_EQ(SpoolFiles(WriterPath() / "w0-0").header().state, spool::kWriterClosed);
    EXPECT_EQ(SpoolFiles(WriterPath()).header().state, spool::kWriterOpen);
  });
}

TEST_F(ForkedWorkerTest, AgentRule11_AChildThatClosesBeforeItRecordsHasNoPart) {
  ExpectInChild([this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    ExpectInChild([] {
      EXPECT_EQ(stepwell_close(60'000), 0);
      EXPECT_EQ(stepwell_current_state(), STEPWELL_CLOSED);
      EXPECT_EQ(stepwell_enabled(), 0);
      Scoped("child");
    });
    EXPECT_THAT(Workers(), IsEmpty());
    EXPECT_EQ(SpoolFiles(WriterPath()).header().state, spool::kWriterOpen);
  });
}

TEST_F(ForkedWorkerTest, AgentRule11_AWorkersExitWaitsForNoAckUnlessItsParentIsGone) {
  const struct {
    const char* name;
    bool parent_lives;
    std::chrono::milliseconds least, most;
  } rows[] = {
      {"worker", true, std::chrono::milliseconds(0), std::chrono::milliseconds(2900)},
      {"daemon", false, std::chrono::milliseconds(3000), std::chrono::milliseconds(20000)},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const auto begin = std::chrono::steady_clock::now();
    (void)RunInChild([&] {
      close(ends[0]);
      setenv("STEPWELL_EXIT_WAIT", "3", 1);
      ASSERT_EQ(Open(), STEPWELL_RECORDING);
      std::fflush(nullptr);
      WaitForOthersToSleep();
      const pid_t opener = getpid();
      int joined[2];
      ASSERT_EQ(pipe(joined), 0);
      const pid_t child = fork();
      if (child == 0) {
        Scoped("child");
        if (write(joined[1], "", 1) != 1) _exit(1);
        if (!row.parent_lives) WaitUntilReaped(opener);
        for (const auto& writer : FindWriters(directory_.path())) {
          if (!fs::exists(writer / "w0-0")) continue;
          SpoolFiles(writer / "w0-0").header().agent_state = spool::kAgentServing;
        }
        std::exit(0);
      }
      char joins = 0;
      EXPECT_EQ(read(joined[0], &joins, 1), 1);
      if (row.parent_lives) waitpid(child, nullptr, 0);
      _exit(0);
    });
    close(ends[1]);
    char byte = 0;
    EXPECT_EQ(read(ends[0], &byte, 1), 0);  // all who held the other end are gone
    close(ends[0]);
    const auto took = std::chrono::steady_clock::now() - begin;
    EXPECT_GE(took, row.least);
    EXPECT_LE(took, row.most);
    for (const auto& writer : FindWriters(directory_.path())) {
      EXPECT_EQ(SpoolFiles(writer / "w0-0").header().state, spool::kWriterClosed);
      fs::remove_all(writer);
    }
  }
}

// The agent may be done with a writer whose process still waits in close().
TEST_F(ForkedWorkerTest, AgentRule11_AChildThatBeginsAfterTheAgentIsDoneHasAWriterOfItsOwn) {
  ExpectInChild([&] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    Scoped("opener");
    const auto opener = WriterPath();
    const int header = open((opener / spool::kHeaderFile).c_str(), O_WRONLY | O_CLOEXEC);
    const std::uint32_t ended = 1;
    ASSERT_EQ(pwrite(header, &ended, sizeof(ended), offsetof(spool::WriterHeader, ended)),
              static_cast<ssize_t>(sizeof(ended)));
    close(header);
    ExpectInChild([&] {
      Scoped("late");
      EXPECT_EQ(stepwell_current_state(), STEPWELL_RECORDING);
      stepwell_close(0);
    });
    EXPECT_FALSE(std::filesystem::exists(opener / "w0-0"));
    const auto writers = FindWriters(directory_.path());
    ASSERT_EQ(writers.size(), 2u);
    for (const auto& writer : writers) {
      EXPECT_THAT(SpoolFiles(writer).Lines(),
                  ::testing::ElementsAre(writer == opener ? "scope opener" : "scope late"));
    }
  });
}

// The writer may have been ended by then.
TEST_F(ForkedWorkerTest, AgentRule11_ADaemonThatBeginsLateHasAWriterOfItsOwnInTheSameAttempt) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  (void)RunInChild([&] {
    close(ends[0]);
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    Scoped("opener");
    const pid_t opener = getpid();
    std::fflush(nullptr);
    WaitForOthersToSleep();
    if (fork() == 0) {
      WaitUntilReaped(opener);
      Scoped("daemon");
      _exit(stepwell_close(0));
    }
    _exit(0);
  });
  close(ends[1]);
  char byte = 0;
  EXPECT_EQ(read(ends[0], &byte, 1), 0);
  close(ends[0]);
  const auto writers = FindWriters(directory_.path());
  ASSERT_EQ(writers.size(), 2u);
  std::vector<std::string> lines;
  std::vector<std::string> keys;
  for (const auto& writer : writers) {
    for (const std::string& line : SpoolFiles(writer).Lines()) lines.push_back(line);
    const std::string json = ReadText(writer / "writer.json");
    keys.push_back(json.substr(json.find("\"attempt_key\""), 60));
    EXPECT_FALSE(fs::exists(writer / "w0-0"));
  }
  EXPECT_THAT(lines, UnorderedElementsAre("scope opener", "scope daemon"));
  EXPECT_EQ(keys[0], keys[1]);
}

// A daemon closes every descriptor before it begins.
TEST_F(ForkedWorkerTest, AgentRule11_JoinsByPathWhereAllDescriptorsWereClosed) {
  ExpectInChild([this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    ExpectInChild([this] {
      for (int fd = 3; fd < 256; ++fd) close(fd);
      ASSERT_EQ(chdir("/"), 0);
      Scoped("daemon");
      EXPECT_TRUE(IsAlive(0));
    });
    EXPECT_THAT(LinesOf("w0-0"), ElementsAre("scope daemon"));
  });
}

TEST_F(ForkedWorkerTest, AgentRule11_WhatAChildWithoutAPlaceRecordsIsCountedInItsParentsWriter) {
  ExpectInChild([this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    Number();
    ExpectInChild([] {
      const rlimit limit{64 * 1024, 64 * 1024};
      ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
      for (int i = 0; i < 3; ++i) stepwell_record(Number(), i);
      EXPECT_EQ(stepwell_current_state(), STEPWELL_CLOSED);
      EXPECT_THAT(stepwell_message(), testing::HasSubstr("File too large"));
    });
    EXPECT_EQ(SpoolFiles(WriterPath()).header().dropped_no_ring, 3u);
    EXPECT_THAT(Workers(), IsEmpty());
    EXPECT_FALSE(IsAlive(0));
  });
}

TEST_F(ForkedWorkerTest, AgentRule11_AWorkerBeginsSwitchedOffWhereItsParentIs) {
  ExpectInChild([this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    stepwell_step_begin();
    SpoolFiles files(WriterPath());
    files.header().control = spool::kControlOff;
    stepwell_step_end(STEPWELL_NEXT_BATCH);
    ASSERT_EQ(stepwell_enabled(), 0);
    ExpectInChild([] {
      Scoped("child");
      EXPECT_EQ(stepwell_enabled(), 0);
    });
    EXPECT_THAT(Workers(), IsEmpty());
  });
}

// Its maintenance looks, for it may never end a step.
TEST_F(ForkedWorkerTest, AgentRule11_AWorkerFollowsTheAgentsSwitch) {
  ExpectInChild([this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    ExpectInChild([this] {
      Scoped("child");
      SpoolFiles files(WriterPath() / "w0-0");
      const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      const auto wait_for = [&](int enabled) {
        while (stepwell_enabled() != enabled && std::chrono::steady_clock::now() < patience) {
          std::this_thread::yield();
        }
        EXPECT_EQ(stepwell_enabled(), enabled);
      };
      files.header().control = spool::kControlOff;
      wait_for(0);
      files.header().control = 0;
      wait_for(1);
    });
  });
}

// Not a test: the program that SpawnedProgramsStartAfresh spawns.
TEST_F(ForkedWorkerTest, DISABLED_SpawnedProgram) {
  EXPECT_EQ(stepwell_current_state(), STEPWELL_CLOSED);
  EXPECT_EQ(stepwell_open(nullptr), STEPWELL_RECORDING) << stepwell_message();
  Scoped("spawned");
  stepwell_close(0);
}

TEST_F(ForkedWorkerTest, AgentRule11_SpawnedProgramsStartAfresh) {
  ExpectInChild([this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    const auto parent = WriterPath();
    Scoped("parent");
    setenv("STEPWELL_SPOOL_DIR", directory_.path().c_str(), 1);
    std::string self = fs::read_symlink("/proc/self/exe");
    std::string filter = "--gtest_filter=*DISABLED_SpawnedProgram";
    std::string disabled = "--gtest_also_run_disabled_tests";
    char* arguments[] = {self.data(), filter.data(), disabled.data(), nullptr};
    pid_t child = -1;
    ASSERT_EQ(posix_spawn(&child, self.c_str(), nullptr, nullptr, arguments, environ), 0);
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    const auto writers = FindWriters(directory_.path());
    ASSERT_EQ(writers.size(), 2u);
    for (const auto& writer : writers) {
      EXPECT_FALSE(fs::exists(writer / "w0-0"));
      EXPECT_THAT(SpoolFiles(writer).Lines(),
                  ElementsAre(writer == parent ? "scope parent" : "scope spawned"));
    }
  });
}

}  // namespace
}  // namespace stepwell::recorder
