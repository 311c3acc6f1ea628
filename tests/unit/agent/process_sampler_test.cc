#include "client/agent/process_sampler.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>

#include "tests/unit/agent/sensors/machine.h"

namespace stepwell::agent {
namespace {

// Between two visits.
constexpr absl::Duration kLead = absl::Milliseconds(100);

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class ProcessSamplerTest : public ::testing::Test {
 protected:
  void Visit(pid_t pid, const SensorSelection& selection = {}) {
    sampler_.Visit({.pid = pid, .batch = 7}, selection);
  }
  // Names of what was sealed, with the number of ticks; losses as their counts.
  std::vector<std::string> Sealed() {
    std::vector<std::string> texts;
    for (const ChunkBuilder::Body& bytes : builder_.Seal()) {
      pb::ChunkBody body;
      EXPECT_TRUE(body.ParseFromString(bytes.bytes));
      for (const pb::Table& table : body.tables()) {
        for (const pb::Column& column : table.columns()) {
          texts.push_back(catalog_.definition(column.ref()).name() + " " +
                          std::to_string(1 + table.time_deltas_us_size()));
        }
      }
      for (const pb::Loss& loss : body.losses()) {
        texts.push_back(loss.metric_group() + " lost " + std::to_string(loss.sample_count()));
      }
    }
    return texts;
  }
  Machine machine_;
  SeriesCatalog catalog_;
  ChunkBuilder builder_{catalog_};
  FakeClock clock_;
  ProcessSampler sampler_{catalog_, builder_, clock_, nullptr, kLead};
};

TEST_F(ProcessSamplerTest, SamplesAtOnceWithRatesAfter100MsAndThenOnceAnInterval) {
  Visit(getpid());
  Visit(getpid());
  clock_.Advance(absl::Milliseconds(100));
  Visit(getpid());
  clock_.Advance(absl::Milliseconds(100));
  Visit(getpid());
  EXPECT_THAT(Sealed(), UnorderedElementsAre("cpu_process_threads 2", "memory_process_resident 2",
                                             "cpu_util_process 2", "disk_process_read 2",
                                             "disk_process_write 2"));
}

TEST_F(ProcessSamplerTest, AProcessThatTheAgentDoesNotSeeIsToldAndSampledFromWhenItIsSeen) {
  const auto seal = [this] {
    std::vector<std::string> reasons;
    for (const ChunkBuilder::Body& bytes : builder_.Seal()) {
      pb::ChunkBody body;
      EXPECT_TRUE(body.ParseFromString(bytes.bytes));
      for (const pb::Loss& loss : body.losses()) {
        EXPECT_EQ(loss.cause(), pb::GAP_CAUSE_UNSUPPORTED);
        EXPECT_EQ(loss.sample_count(), 0u) << "it is no hole in what was measured";
        EXPECT_EQ(loss.metric_group(), "cpu");
        reasons.push_back(loss.reason());
      }
      if (body.tables_size() > 0) reasons.push_back("samples");
    }
    return reasons;
  };
  const auto visit = [this](pid_t pid) {
    sampler_.Visit({.pid = pid, .rank = 3}, {});
    clock_.Advance(absl::Seconds(61));
  };
  const std::string unseen = "process metrics of rank 3: not in this PID namespace";
  visit(0);
  EXPECT_THAT(seal(), ElementsAre(unseen));
  for (int i = 0; i < 3; ++i) visit(0);
  EXPECT_THAT(seal(), IsEmpty());
  visit(getpid());
  EXPECT_THAT(seal(), ElementsAre(unseen, "samples")) << "that it is seen again";
  visit(0);
  EXPECT_THAT(seal(), ElementsAre(unseen));
  sampler_.End();
  EXPECT_THAT(seal(), ElementsAre(unseen)) << "how long it was so";
}

TEST_F(ProcessSamplerTest, GroupsThatNobodyWantsGiveNothing) {
  Visit(0, SensorSelection::Parse({.groups = "gpu,network"}).value());
  Visit(getpid(), SensorSelection::Parse({.groups = "gpu"}).value());
  EXPECT_THAT(Sealed(), IsEmpty());
}

TEST_F(ProcessSamplerTest, WhatFailedAtTheEndIsTold) {
  machine_.Write("proc/42/stat", "42 (x) S 1 2\n");
  machine_.Write("proc/42/statm", "5 1 2 1 0 8 0\n");
  machine_.Write("proc/42/io", "read_bytes: 1\nwrite_bytes: 1\n");
  ProcessSampler sampler(catalog_, builder_, clock_, nullptr, kLead, machine_.root());
  for (int i = 0; i < 3; ++i) {
    sampler.Visit({.pid = 42}, {});
    clock_.Advance(absl::Seconds(1));
  }
  Sealed();
  sampler.End();
  // The last tick lacks it as well.
  EXPECT_THAT(Sealed(), ElementsAre("memory_process_resident 1", "disk_process_read 1",
                                    "disk_process_write 1", "cpu lost 6"));
  sampler.End();
  EXPECT_THAT(Sealed(), IsEmpty());
}

TEST_F(ProcessSamplerTest, AgentRule10_TheLastTickIsTakenWhenTheRankCloses) {
  const SensorSelection seldom = SensorSelection::Parse({.interval = "1h"}).value();
  const auto texts = [&](const std::function<void()>& then, pid_t pid) {
    ProcessSampler sampler(catalog_, builder_, clock_, nullptr, kLead, machine_.root());
    machine_.Write("proc/42/stat", "42 (x) S 1 1 1 0 -1 0 0 0 0 0 5 5 0 0 20 0 3 0 77 0 0\n");
    machine_.Write("proc/42/statm", "5 1 2 1 0 8 0\n");
    machine_.Write("proc/42/io", "read_bytes: 1\nwrite_bytes: 1\n");
    for (const absl::Duration after : {absl::ZeroDuration(), absl::Milliseconds(100)}) {
      clock_.Advance(after);
      sampler.Visit({.pid = pid, .batch = 7}, seldom);
    }
    clock_.Advance(absl::Minutes(10));
    Sealed();
    then();
    sampler.End();
    std::vector<std::string> sealed = Sealed();
    sampler.End();
    EXPECT_THAT(Sealed(), IsEmpty()) << "once";
    return sealed;
  };
  EXPECT_THAT(
      texts([] {}, 42),
      UnorderedElementsAre("cpu_process_threads 1", "memory_process_resident 1",
                           "cpu_util_process 1", "disk_process_read 1", "disk_process_write 1"));
  EXPECT_THAT(texts([&] { machine_.Remove("proc/42"); }, 42), IsEmpty()) << "it is gone";
  EXPECT_THAT(texts([&] { machine_.Write("proc/42/stat", "42 (x) Z 1\n"); }, 42), IsEmpty())
      << "it waits for its parent";
}

TEST_F(ProcessSamplerTest, OneThatRestsIsNotAskedAtItsEnd) {
  Visit(getpid());
  Sealed();
  clock_.Advance(absl::Minutes(10));
  sampler_.Rest();
  sampler_.End();
  EXPECT_THAT(Sealed(), IsEmpty());
}

// --- by the thread of a reader, on the real clock: what hangs hangs for real

class WatchedProcessTest : public ProcessSamplerTest {
 protected:
  static constexpr absl::Duration kPatience = absl::Milliseconds(100);

  WatchedProcessTest() {
    for (const char* pid : {"42", "43"}) WriteProcess(std::string("proc/") + pid);
  }
  void WriteProcess(const std::string& folder) {
    machine_.Write(folder + "/stat", "1 (x) S 1 1 1 0 -1 0 0 0 0 0 5 5 0 0 20 0 3 0 77 0 0\n");
    machine_.Write(folder + "/statm", "5 1 2 1 0 8 0\n");
    machine_.Write(folder + "/io", "read_bytes: 1\nwrite_bytes: 1\n");
  }
  // Until `holds`; each sampler once in a turn, as the agent's loop does.
  bool VisitUntil(const std::function<bool()>& holds) {
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    while (!holds()) {
      if (absl::Now() > deadline) return false;
      hung_.Visit({.pid = 42}, often_);
      well_.Visit({.pid = 43}, often_);
      Count();
      absl::SleepFor(absl::Milliseconds(1));
    }
    return true;
  }
  // Of whoever hangs in it by now: where the thread was not given its turn, nobody does.
  void LetGo() {
    const int pipe =
        open((machine_.root() / "proc/42/io").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (pipe >= 0) close(pipe);
  }
  static bool Poll(const std::function<bool()>& holds) {
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    while (!holds()) {
      if (absl::Now() > deadline) return false;
      absl::SleepFor(absl::Milliseconds(1));
    }
    return true;
  }
  void Count() {
    for (const std::string& text : Sealed()) {
      if (text.rfind("cpu_process_threads", 0) == 0) ++hung_count_;
      if (text.rfind("disk lost", 0) == 0) ++lost_count_;
    }
    for (const ChunkBuilder::Body& bytes : well_builder_.Seal()) {
      pb::ChunkBody body;
      ASSERT_TRUE(body.ParseFromString(bytes.bytes));
      well_count_ += body.tables_size();
    }
  }

  SensorSelection often_ = SensorSelection::Parse({.interval = "10ms"}).value();
  ProcessReader reader_{RealClock::Get(), kPatience};
  SeriesCatalog well_catalog_;
  ChunkBuilder well_builder_{well_catalog_};
  ProcessSampler hung_{catalog_, builder_, RealClock::Get(), &reader_, kLead, machine_.root()};
  ProcessSampler well_{well_catalog_, well_builder_, RealClock::Get(),
                       &reader_,      kLead,         machine_.root()};
  int hung_count_ = 0;
  int lost_count_ = 0;
  int well_count_ = 0;
};

TEST_F(WatchedProcessTest, OneThatHangsIsNamedHidesNoOtherAndComesBack) {
  ASSERT_TRUE(VisitUntil([&] { return hung_count_ >= 3 && well_count_ >= 3; }));
  EXPECT_EQ(lost_count_, 0);
  const std::filesystem::path io = machine_.root() / "proc/42/io";
  const std::filesystem::path aside = machine_.root() / "pipe";
  ASSERT_EQ(mkfifo(aside.c_str(), 0600), 0);
  std::filesystem::rename(aside, io);
  ASSERT_TRUE(VisitUntil([&] { return lost_count_ > 0; }));
  const int hung_before = hung_count_;
  const int well_before = well_count_;
  // The other goes on, by another thread.
  ASSERT_TRUE(VisitUntil([&] { return well_count_ >= well_before + 20; }));
  EXPECT_EQ(hung_count_, hung_before);
  std::filesystem::rename(io, aside);
  WriteProcess("proc/42");
  const int pipe = open(aside.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(pipe, 0) << "nobody hangs in it";
  close(pipe);
  EXPECT_TRUE(VisitUntil([&] { return hung_count_ >= hung_before + 3; }));
}

// More hang than there may be threads.
TEST_F(WatchedProcessTest, ThreadsThatHangAreBoundedAndWhatTheyDoNotAnswerIsCounted) {
  struct Hung {
    Hung(ProcessReader& reader, const std::filesystem::path& root, int number)
        : pid(100 + number), sampler(catalog, builder, RealClock::Get(), &reader, kLead, root) {}
    int LostCount() {
      for (const ChunkBuilder::Body& bytes : builder.Seal()) {
        pb::ChunkBody body;
        EXPECT_TRUE(body.ParseFromString(bytes.bytes));
        for (const pb::Loss& loss : body.losses()) lost += static_cast<int>(loss.sample_count());
        ticks += body.tables_size();
      }
      return lost;
    }
    pid_t pid;
    SeriesCatalog catalog;
    ChunkBuilder builder{catalog};
    ProcessSampler sampler;
    int lost = 0;
    int ticks = 0;
  };
  const auto threads = [] {
    int count = 0;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      std::string name;
      std::ifstream(task.path() / "comm") >> name;
      count += name == "sense-process" ? 1 : 0;
    }
    return count;
  };
  constexpr int kCount = ProcessReader::kHangingMax + 9;
  std::vector<std::unique_ptr<Hung>> all;
  for (int i = 0; i < kCount; ++i) {
    all.push_back(std::make_unique<Hung>(reader_, machine_.root(), i));
    const std::string folder = "proc/" + std::to_string(all.back()->pid);
    WriteProcess(folder);
    machine_.Remove(folder + "/io");
    ASSERT_EQ(mkfifo((machine_.root() / folder / "io").c_str(), 0600), 0);
  }
  const auto visit_until = [&](const std::function<bool(Hung&)>& holds) {
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    while (!std::all_of(all.begin(), all.end(), [&](const auto& each) { return holds(*each); })) {
      if (absl::Now() > deadline) return false;
      for (const auto& each : all) each->sampler.Visit({.pid = each->pid}, often_);
      absl::SleepFor(absl::Milliseconds(1));
    }
    return true;
  };
  ASSERT_TRUE(visit_until([](Hung& hung) { return hung.LostCount() > 0; }));
  const absl::Time enough = absl::Now() + kPatience * (kCount + 1);
  ASSERT_TRUE(visit_until([&](Hung&) { return absl::Now() > enough; }));
  EXPECT_EQ(threads(), ProcessReader::kHangingMax);
  // They come back when the files do.
  std::vector<int> pipes;
  for (const auto& each : all) {
    const std::filesystem::path io = machine_.root() / "proc" / std::to_string(each->pid) / "io";
    const std::filesystem::path aside = io.string() + ".aside";
    std::filesystem::rename(io, aside);
    WriteProcess("proc/" + std::to_string(each->pid));
    const int pipe = open(aside.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (pipe >= 0) close(pipe);
  }
  EXPECT_TRUE(visit_until([](Hung& hung) {
    hung.LostCount();
    return hung.ticks > 0;
  }));
  EXPECT_LE(threads(), 1);
}

TEST_F(WatchedProcessTest, AnAnswerThatDoesNotComeAtTheEndIsCountedAndAllWaitTogether) {
  machine_.Remove("proc/42/io");
  ASSERT_EQ(mkfifo((machine_.root() / "proc/42/io").c_str(), 0600), 0);
  hung_.Visit({.pid = 42}, {});
  well_.Visit({.pid = 43}, {});
  const absl::Time began = absl::Now();
  hung_.End();
  well_.End();
  EXPECT_LT(absl::Now() - began, 2 * ProcessReader::kLastWaits);
  EXPECT_THAT(Sealed(), UnorderedElementsAre("cpu lost 2", "memory lost 1", "disk lost 2"));
  builder_.Seal();
  well_builder_.Seal();
  LetGo();
}

TEST_F(WatchedProcessTest, WhatAnotherProcessInItsPlaceLeavesUnansweredIsCounted) {
  machine_.Remove("proc/42/io");
  ASSERT_EQ(mkfifo((machine_.root() / "proc/42/io").c_str(), 0600), 0);
  hung_.Visit({.pid = 42}, {});
  hung_.Visit({.pid = 43}, {});
  EXPECT_THAT(Sealed(), ::testing::IsSupersetOf({"cpu lost 2", "memory lost 1", "disk lost 2"}));
  LetGo();
}

TEST_F(WatchedProcessTest, AgentRule16_BetweenTwoVisitsItIsReadEach10MsAndWhatIsLateIsCounted) {
  // As patient as the agent's: what is late is not taken for hanging.
  ProcessReader reader(RealClock::Get());
  ProcessSampler well(well_catalog_, well_builder_, RealClock::Get(), &reader, kLead,
                      machine_.root());
  const absl::Time began = absl::Now();
  std::uint64_t stored = 0;
  std::uint64_t late = 0;
  const auto count = [&] {
    for (const ChunkBuilder::Body& bytes : well_builder_.Seal()) {
      pb::ChunkBody body;
      ASSERT_TRUE(body.ParseFromString(bytes.bytes));
      for (const pb::Table& table : body.tables()) {
        stored += 1 + static_cast<std::uint64_t>(table.time_deltas_us_size());
      }
      for (const pb::Loss& loss : body.losses()) {
        // Where the machine kept the thread waiting for so long.
        EXPECT_THAT(loss.cause(),
                    ::testing::AnyOf(pb::GAP_CAUSE_LATE, pb::GAP_CAUSE_SENSOR_FAILED));
        if (loss.metric_group() == "memory") late += loss.sample_count();
      }
    }
  };
  // As seldom as the agent's loop comes, a late visit among them.
  for (int visit = 0; visit < 20; ++visit) {
    well.Visit({.pid = 43}, often_);
    const absl::Time next = absl::Now() + (visit == 10 ? 6 * kLead : kLead);
    ASSERT_TRUE(Poll([&] { return absl::Now() >= next; }));
    count();
  }
  well.End();
  count();
  const double ticks = absl::FDivDuration(absl::Now() - began, absl::Milliseconds(10));
  EXPECT_GE(static_cast<double>(stored), 20 * 2) << "not once a visit";
  EXPECT_GE(static_cast<double>(stored + late), 0.9 * ticks);
  EXPECT_LE(static_cast<double>(stored + late), 1.1 * ticks);
  EXPECT_GE(late, 20u) << "who does not come for them gets none";
}

TEST_F(WatchedProcessTest, TicksOfAFullDiskAreToldAsThat) {
  ASSERT_TRUE(VisitUntil([&] { return well_count_ >= 3; }));
  well_.OnNoRoom();
  const absl::Time later = absl::Now() + absl::Milliseconds(200);
  ASSERT_TRUE(Poll([&] { return absl::Now() >= later; }));
  std::uint64_t no_room = 0;
  ASSERT_TRUE(Poll([&] {
    well_.Visit({.pid = 43}, often_);
    for (const ChunkBuilder::Body& bytes : well_builder_.Seal()) {
      pb::ChunkBody body;
      EXPECT_TRUE(body.ParseFromString(bytes.bytes));
      for (const pb::Loss& loss : body.losses()) {
        if (loss.cause() != pb::GAP_CAUSE_SPOOL_FULL || loss.metric_group() != "memory") continue;
        no_room += loss.sample_count();
      }
    }
    return no_room > 0;
  }));
  EXPECT_GE(no_room, 15u);
}

TEST_F(WatchedProcessTest, AnotherIntervalOrOtherGroupsTakeEffectWhileItIsReadByItself) {
  const SensorSelection memory =
      SensorSelection::Parse({.groups = "memory", .interval = "20ms"}).value();
  int memory_count = 0;
  const auto visit_until = [&](const SensorSelection& selection,
                               const std::function<bool()>& holds) {
    return Poll([&] {
      well_.Visit({.pid = 43}, selection);
      for (const ChunkBuilder::Body& bytes : well_builder_.Seal()) {
        pb::ChunkBody body;
        EXPECT_TRUE(body.ParseFromString(bytes.bytes));
        for (const pb::Table& table : body.tables()) {
          const bool is_all = table.columns_size() > 1;
          well_count_ += is_all ? 1 : 0;
          memory_count += is_all ? 0 : 1;
        }
      }
      return holds();
    });
  };
  ASSERT_TRUE(visit_until(often_, [&] { return well_count_ >= 3; }));
  ASSERT_TRUE(visit_until(memory, [&] { return memory_count >= 3; }));
  const int all_before = std::exchange(well_count_, 0);
  EXPECT_GE(all_before, 3);
  ASSERT_TRUE(visit_until(memory, [&] { return memory_count >= 6; }));
  EXPECT_EQ(well_count_, 0);
  // One that rests is left alone.
  well_.Rest();
  EXPECT_FALSE(well_.IsDue(absl::InfiniteDuration()));
  ASSERT_TRUE(visit_until(often_, [&] { return well_count_ >= 3; }));
}

TEST_F(WatchedProcessTest, WhatWasAskedOfAShortRunIsTakenAtItsEnd) {
  hung_.Visit({.pid = 42}, {});
  hung_.End();
  EXPECT_THAT(Sealed(), ::testing::Contains("cpu_process_threads 1"));
}

}  // namespace
}  // namespace stepwell::agent
