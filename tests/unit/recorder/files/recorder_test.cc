// The C ABI as a program uses it, each case in a process of its own.
#include "stepwell/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "client/recorder/src/monotonic.h"
#include "stepwell/stepwell.h"
#include "tests/unit/recorder/files/in_child.h"
#include "tests/unit/recorder/files/recorder_fixture.h"
#include "tests/unit/recorder/files/spool_files.h"

namespace stepwell::recorder {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(RecorderTest, RecordsWhatAProgramDoes) {
  ExpectInChild([this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING) << stepwell_message();
    EXPECT_STREQ(stepwell_message(), "");
    const stepwell_label label{"split", "train"};
    const stepwell_series_id loss =
        stepwell_define_series("training", "loss", "1", STEPWELL_GAUGE, &label, 1);
    stepwell_step_begin();
    stepwell_scope train;
    EXPECT_EQ(stepwell_innermost_scope(), 0u);
    stepwell_scope_begin(&train, stepwell_define_scope("train_batch"));
    Scoped("forward");
    EXPECT_EQ(stepwell_innermost_scope(), stepwell_define_scope("train_batch"));
    stepwell_scope_end(&train);
    stepwell_record(loss, 0.25);
    stepwell_record_at(loss, 3, 1'700'000'000'000'000, 0.5);
    stepwell_step_end(STEPWELL_NEXT_BATCH);
    EXPECT_EQ(stepwell_dropped_count(), 0u);
    EXPECT_EQ(stepwell_close(0), 0);
  });
  EXPECT_THAT(Lines(), ElementsAre("begin", "scope+ train_batch/forward", "scope+ train_batch",
                                   "record+ training/loss{split=train}@-2",
                                   "record_at training/loss{split=train}@3", "end@0"));
  SpoolFiles files(WriterPath());
  EXPECT_EQ(files.header().state, spool::kWriterClosed);
  EXPECT_FALSE(files.IsAlive());
}

TEST_F(RecorderTest, ScopesApartLieInNoneAndHoldNone) {
  ExpectInChild([this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING) << stepwell_message();
    const stepwell_scope_id task = stepwell_define_scope("task");
    stepwell_scope around;
    stepwell_scope_begin(&around, stepwell_define_scope("around"));
    std::array<stepwell_scope, 100> tasks{};
    for (stepwell_scope& each : tasks) stepwell_scope_begin_apart(&each, task);
    Scoped("forward");
    for (stepwell_scope& each : tasks) EXPECT_GT(stepwell_scope_end(&each), 0u);
    stepwell_scope_end(&around);
    EXPECT_EQ(stepwell_dropped_count(), 0u);
  });
  std::vector<std::string> wanted(102, "scope task");
  wanted.front() = "scope around/forward";
  wanted.back() = "scope around";
  EXPECT_EQ(Lines(), wanted);
}

TEST_F(RecorderTest, AScopeWithLabelsIsAnotherThanItsPlainName) {
  ExpectInChild([this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING) << stepwell_message();
    const stepwell_label label{"loader", "train"};
    const stepwell_scope_id labelled = stepwell_define_labelled_scope("fetch", &label, 1);
    ASSERT_NE(labelled, 0u);
    EXPECT_NE(labelled, stepwell_define_scope("fetch"));
    EXPECT_EQ(labelled, stepwell_define_labelled_scope("fetch", &label, 1));
    EXPECT_EQ(stepwell_define_scope("fetch"), stepwell_define_labelled_scope("fetch", nullptr, 0));
    stepwell_step_begin();
    stepwell_scope fetch;
    stepwell_scope_begin(&fetch, labelled);
    Scoped("fetch");
    stepwell_scope_end(&fetch);
    stepwell_step_end(STEPWELL_NEXT_BATCH);
    stepwell_close(0);
  });
  EXPECT_THAT(Lines(), ElementsAre("begin", "scope+ fetch{loader=train}/fetch",
                                   "scope+ fetch{loader=train}", "end@0"));
}

TEST_F(RecorderTest, TheEndOfAScopeTellsHowLongItTook) {
  ExpectInChild([this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING) << stepwell_message();
    stepwell_scope scope;
    const std::uint64_t before_ns = MonotonicNs();
    stepwell_scope_begin(&scope, stepwell_define_scope("forward"));
    const std::uint64_t begun_ns = MonotonicNs();
    while (MonotonicNs() == begun_ns) {
    }
    const std::uint64_t took_ns = stepwell_scope_end(&scope);
    EXPECT_GT(took_ns, 0u);
    EXPECT_LE(took_ns, MonotonicNs() - before_ns);
    EXPECT_EQ(stepwell_scope_end(&scope), 0u) << "it has ended";
    stepwell_scope_begin(&scope, 0);
    EXPECT_EQ(stepwell_scope_end(&scope), 0u) << "its name was refused";
    stepwell_scope_begin(&scope, stepwell_define_scope("forward"));
    (void)stepwell_close(0);
    EXPECT_EQ(stepwell_scope_end(&scope), 0u) << "it is not recorded";
  });
}

TEST_F(RecorderTest, TheCppFaceRecordsTheSame) {
  ExpectInChild([this] {
    Recorder recorder({.spool_dir = directory_.path(), .trial = "t", .exit_wait = milliseconds(0)});
    ASSERT_EQ(recorder.state(), STEPWELL_RECORDING);
    const Series loss("training", "loss", {.unit = "1"});
    recorder.StepBegin();
    {
      STEPWELL_SCOPE("train_batch");
      STEPWELL_SCOPE("forward");
    }
    recorder.Record(loss, 1);
    RecordAt(loss, 9, std::chrono::system_clock::now(), 2);
    recorder.StepEnd(5);
  });
  EXPECT_THAT(Lines(),
              ElementsAre("begin", "scope+ train_batch/forward", "scope+ train_batch",
                          "record+ training/loss@-2", "record_at training/loss@9", "end@5"));
}

TEST_F(RecorderTest, NothingIsRecordedBeforeOpenAndAfterClose) {
  ExpectInChild([this] {
    EXPECT_EQ(stepwell_current_state(), STEPWELL_CLOSED);
    EXPECT_EQ(stepwell_enabled(), 0);
    Scoped("before");
    stepwell_step_end(1);
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    EXPECT_EQ(stepwell_enabled(), 1);
    EXPECT_EQ(Open(), STEPWELL_RECORDING);  // again: the same one
    Scoped("during");
    stepwell_scope open;
    stepwell_scope_begin(&open, stepwell_define_scope("open"));
    stepwell_close(0);
    stepwell_scope_end(&open);
    Scoped("after");
    EXPECT_EQ(stepwell_enabled(), 0);
    EXPECT_EQ(stepwell_close(0), 0);
  });
  EXPECT_THAT(Lines(), ElementsAre("scope during"));
}

TEST_F(RecorderTest, OpensAgainAsAnotherWriterWithTheSameNames) {
  ExpectInChild([this] {
    const stepwell_series_id loss =
        stepwell_define_series("training", "loss", nullptr, STEPWELL_GAUGE, nullptr, 0);
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    stepwell_record(loss, 1);
    stepwell_close(0);
    const auto first = WriterPath();
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    stepwell_record(loss, 2);
    Scoped("a");
    stepwell_close(0);
    for (const auto& writer : FindWriters(directory_.path())) {
      if (writer == first) {
        EXPECT_THAT(SpoolFiles(writer).Lines(), ElementsAre("record training/loss@-1"));
      } else {
        EXPECT_THAT(SpoolFiles(writer).Lines(), ElementsAre("record training/loss@-1", "scope a"));
      }
    }
  });
  EXPECT_EQ(FindWriters(directory_.path()).size(), 2u);
}

TEST_F(RecorderTest, CloseWaitsForTheAck) {
  ExpectInChild([this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    SpoolFiles files(WriterPath());
    std::thread agent([&files] {
      while (files.header().state != spool::kWriterClosed) std::this_thread::yield();
      files.header().agent_state = spool::kAgentAcked;
    });
    EXPECT_EQ(stepwell_close(60'000), 1);
    agent.join();
  });
}

TEST_F(RecorderTest, CloseDoesNotWaitLongerThanItMakesSense) {
  const struct {
    const char* name;
    std::uint32_t agent_state;
    std::int64_t timeout_ms;
    milliseconds least, most;
  } rows[] = {
      {"no time", spool::kAgentServing, 0, milliseconds(0), milliseconds(1500)},
      {"negative", spool::kAgentServing, -5, milliseconds(0), milliseconds(1500)},
      {"an agent that is too slow", spool::kAgentServing, 50, milliseconds(50), milliseconds(2000)},
      {"refused", spool::kAgentRefused, 60'000, milliseconds(0), milliseconds(1500)},
      {"nobody ever came", spool::kAgentNone, 60'000, milliseconds(2000), milliseconds(6000)},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    ExpectInChild([&] {
      ASSERT_EQ(Open(), STEPWELL_RECORDING);
      for (const auto& writer : FindWriters(directory_.path())) {
        SpoolFiles(writer).header().agent_state = row.agent_state;
      }
      const auto begin = std::chrono::steady_clock::now();
      EXPECT_EQ(stepwell_close(row.timeout_ms), 0);
      const auto took = std::chrono::steady_clock::now() - begin;
      EXPECT_GE(took, row.least);
      EXPECT_LE(took, row.most);
    });
  }
}

TEST_F(RecorderTest, DisabledByTheEnvironment) {
  ExpectInChild([this] {
    setenv("STEPWELL_DISABLED", "1", 1);
    EXPECT_EQ(Open(), STEPWELL_DISABLED);
    EXPECT_STREQ(stepwell_message(), "STEPWELL_DISABLED is set");
    Scoped("a");
    EXPECT_EQ(stepwell_enabled(), 0);
    EXPECT_EQ(stepwell_dropped_count(), 0u);
  });
  EXPECT_THAT(FindWriters(directory_.path()), IsEmpty());
}

TEST_F(RecorderTest, WithoutASpoolDirectoryItGoesOnInMemory) {
  ExpectInChild([] {
    setenv("STEPWELL_SPOOL_DIR", "/proc/no/spool", 1);
    EXPECT_EQ(stepwell_open(nullptr), STEPWELL_MEMORY_ONLY);
    EXPECT_STREQ(stepwell_message(),
                 "cannot make the spool directory /proc/no/spool: No such file or directory");
    // More than the biggest ring holds: nobody reads them.
    constexpr std::uint64_t kCount = 400'000;
    for (std::uint64_t i = 0; i < kCount; ++i) Scoped("a");
    const std::uint64_t dropped = stepwell_dropped_count();
    EXPECT_GT(dropped, 0u);
    EXPECT_LT(dropped, kCount);
    EXPECT_EQ(stepwell_close(5000), 0);
  });
}

TEST_F(RecorderTest, AgentRule01_EachThreadHasItsRing) {
  constexpr int kThreads = 8;
  constexpr int kScopes = 1000;
  ExpectInChild([this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([] {
        for (int i = 0; i < kScopes; ++i) Scoped("a");
      });
    }
    for (std::thread& thread : threads) thread.join();
    stepwell_close(0);
  });
  SpoolFiles files(WriterPath());
  std::map<std::uint32_t, std::size_t> events_by_thread;
  for (std::uint32_t ring = 0; ring < files.header().ring_count; ++ring) {
    const SpoolFiles::RingView view = files.ReadRing(ring);
    EXPECT_EQ(view.header().state, spool::kRingEnded);
    // The one that was made ahead is empty.
    if (!view.events.empty()) events_by_thread[view.header().thread] += view.events.size();
  }
  EXPECT_EQ(events_by_thread.size(), static_cast<std::size_t>(kThreads));
  for (const auto& [thread, count] : events_by_thread) {
    EXPECT_EQ(count, static_cast<std::size_t>(kScopes));
  }
  EXPECT_EQ(files.header().dropped_no_ring, 0u);
  EXPECT_EQ(files.header().early_count, 0u);
}

// What a reader that comes now finds: events in rings, and events that were given up.
struct Found {
  std::uint64_t landed = 0;
  std::uint64_t dropped = 0;
};

Found CountIn(SpoolFiles& files) {
  Found found{0, files.header().dropped_no_ring};
  for (std::uint32_t ring = 0; ring < files.header().ring_count; ++ring) {
    const SpoolFiles::RingView view = files.ReadRing(ring);
    found.landed += view.header().head;
    found.dropped += view.header().dropped;
  }
  return found;
}

TEST_F(RecorderTest, CallsThatRaceWithACloseLandBeforeItOrAreCounted) {
  constexpr int kRounds = 12;
  constexpr int kThreads = 3;
  ExpectInChild([this] {
    const stepwell_series_id loss =
        stepwell_define_series("training", "loss", "", STEPWELL_GAUGE, nullptr, 0);
    for (int round = 0; round < kRounds; ++round) {
      ASSERT_EQ(Open(), STEPWELL_RECORDING);
      std::atomic<int> begun{0};
      std::atomic<bool> is_done{false};
      std::atomic<std::uint64_t> calls{0};
      std::vector<std::thread> threads;
      for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&] {
          stepwell_record(loss, 1);
          ++begun;
          std::uint64_t own = 1;
          for (; !is_done; ++own) stepwell_record(loss, 1);
          calls += own;
        });
      }
      while (begun < kThreads) std::this_thread::yield();
      const auto path = WriterPath();
      stepwell_close(0);
      SpoolFiles files(path);
      const Found at_close = CountIn(files);
      for (int i = 0; i < 50; ++i) std::this_thread::yield();
      is_done = true;
      for (std::thread& thread : threads) thread.join();
      const Found after = CountIn(files);
      EXPECT_EQ(at_close.landed, after.landed) << "round " << round;
      EXPECT_EQ(after.landed + after.dropped, calls) << "round " << round;
      EXPECT_EQ(stepwell_dropped_count(), after.dropped);
      std::filesystem::remove_all(path);
    }
  });
}

TEST_F(RecorderTest, RingsOfAReaderThatKeepsUpNeverFill) {
  ExpectInChild([this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    Scoped("a");
    const SpoolFiles files(WriterPath());
    const int fd = open(files.RingPath(0).c_str(), O_RDWR);
    auto* ring = static_cast<spool::RingHeader*>(
        mmap(nullptr, spool::kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    close(fd);
    std::atomic<bool> is_done{false};
    std::thread reader([&] {
      while (!is_done) ring->tail.store(ring->head.load());
    });
    for (int i = 0; i < 100'000; ++i) {
      Scoped("a");
      while (ring->head.load() - ring->tail.load() > 4000) std::this_thread::yield();
    }
    is_done = true;
    reader.join();
    EXPECT_EQ(stepwell_dropped_count(), 0u);
    EXPECT_EQ(ring->head.load(), 100'001u);
  });
}

// From here on the calling thread ends at its first system call, the one that ends it excepted. (Not
// strict mode: that takes the time stamp counter away, too.)
bool ForbidSystemCalls() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_THREAD),
  };
  const sock_fprog filter{std::size(program), program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST_F(RecorderTest, AgentRule01_AWarmCallMakesNoSystemCall) {
  const std::string source =
      ReadText("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  if (source != "tsc\n" && source != "kvm-clock\n") {
    GTEST_SKIP() << "reading this machine's clock (" << source << ") is a system call itself";
  }
  const int status = RunInChild([this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    const stepwell_scope_id outer = stepwell_define_scope("outer");
    const stepwell_scope_id inner = stepwell_define_scope("inner");
    const stepwell_series_id loss =
        stepwell_define_series("training", "loss", "", STEPWELL_GAUGE, nullptr, 0);
    const auto step = [=] {
      stepwell_scope scope, nested;
      stepwell_scope_begin(&scope, outer);
      stepwell_scope_begin(&nested, inner);
      stepwell_record(loss, 1);
      stepwell_scope_end(&nested);
      stepwell_record_at(loss, 1, 1, 1);
      stepwell_scope_end(&scope);
      stepwell_step_end(STEPWELL_NEXT_BATCH);
    };
    std::atomic<bool> is_done{false};
    std::thread([&] {
      step();
      if (!ForbidSystemCalls()) _exit(kExitSkipped);
      for (int i = 0; i < 20'000; ++i) step();  // on through full rings, too
      is_done = true;
      syscall(SYS_exit, 0);
    }).join();
    EXPECT_TRUE(is_done) << "the thread ended at a system call";
  });
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kExitSkipped) GTEST_SKIP() << "seccomp is not allowed here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// The calling thread ends where it would touch a file.
bool ForbidFiles() {
  std::vector<sock_filter> program = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const unsigned call : {SYS_openat, SYS_open, SYS_fallocate, SYS_ftruncate, SYS_renameat,
                              SYS_unlinkat, SYS_write, SYS_fcntl}) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_THREAD));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST_F(RecorderTest, AThreadsFirstEventsTouchNoFile) {
  static constexpr int kThreads = 6;  // more than there are rings made ahead
  const int status = RunInChild([this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    const stepwell_scope_id name = stepwell_define_scope("a");
    std::atomic<int> done{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        if (!ForbidFiles()) _exit(kExitSkipped);
        for (int i = 0; i < 100; ++i) {
          stepwell_scope scope;
          stepwell_scope_begin(&scope, name);
          stepwell_scope_end(&scope);
        }
        ++done;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(done, kThreads) << "a thread ended at a file";
    EXPECT_EQ(stepwell_dropped_count(), 0u);
    stepwell_close(0);
  });
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kExitSkipped) GTEST_SKIP() << "seccomp is not allowed here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(Lines().size(), kThreads * 100u);
}

TEST_F(RecorderTest, RefusesWhatMakesNoSense) {
  EXPECT_EQ(stepwell_define_scope(nullptr), 0u);
  EXPECT_EQ(stepwell_define_scope("a/b"), 0u);
  EXPECT_EQ(stepwell_define_series(nullptr, "n", "", STEPWELL_GAUGE, nullptr, 0), 0u);
  EXPECT_EQ(stepwell_define_series("g", "n", "", static_cast<stepwell_series_kind>(0), nullptr, 0),
            0u);
  EXPECT_EQ(stepwell_define_series("g", "n", "", STEPWELL_GAUGE, nullptr, 1), 0u);
  const stepwell_label twice[] = {{"a", "1"}, {"a", "2"}};
  EXPECT_EQ(stepwell_define_series("g", "n", "", STEPWELL_GAUGE, twice, 2), 0u);
  const stepwell_label empty[] = {{"a", nullptr}};
  EXPECT_EQ(stepwell_define_series("g", "n", "", STEPWELL_GAUGE, empty, 1), 0u);
  EXPECT_EQ(stepwell_define_labelled_scope(nullptr, twice, 1), 0u);
  EXPECT_EQ(stepwell_define_labelled_scope("a", nullptr, 1), 0u);
  EXPECT_EQ(stepwell_define_labelled_scope("a", twice, 2), 0u);
  EXPECT_EQ(stepwell_define_labelled_scope("a", empty, 1), 0u);
  const stepwell_label reserved{"worker", "1"};
  EXPECT_EQ(stepwell_define_labelled_scope("a", &reserved, 1), 0u);
  stepwell_record(0, 1);
  stepwell_record_at(0, 0, 0, 1);
}

}  // namespace
}  // namespace stepwell::recorder
