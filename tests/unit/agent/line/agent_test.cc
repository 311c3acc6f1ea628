// The whole line in one process tree: recorders in child processes, the agent here, a master in
// memory over real gRPC.
#include "client/agent/agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include "client/agent/clock_anchor.h"
#include "client/agent/sensors/mount_table.h"
#include "client/agent/writer_identity.h"
#include "client/recorder/src/spool_format.h"
#include "tests/unit/agent/line/agent_fixture.h"

namespace stepwell::agent {
namespace {

TEST_F(AgentTest, AgentRule10_StoresWhatAShortRunRecordedAndLetsItsCloseReturn) {
  StartAgent();
  const pid_t child = Record("short", 0, [] {
    RecordSteps(50);
    if (stepwell_close(10000) != 1) _exit(3);
  });
  EXPECT_EQ(Wait(child), 0);
  const Writers writers = master_.writers();
  ASSERT_EQ(writers.size(), 1u);
  const FakeMaster::Writer& writer = writers.begin()->second;
  EXPECT_TRUE(writer.closed);
  EXPECT_FALSE(writer.died);
  EXPECT_EQ(writer.open.external_id(), "short");
  ExpectEachStepOnce(writers, 50);
  // A step is one tick; a record keeps its own time.
  std::map<std::int32_t, std::int64_t> step_times;
  for (const FakeMaster::Sample& sample : FakeMaster::SamplesOf(writer)) {
    if (sample.name == "step") step_times[sample.batch] = sample.time_us;
  }
  for (const FakeMaster::Sample& sample : FakeMaster::SamplesOf(writer)) {
    if (sample.name == "forward") {
      EXPECT_EQ(sample.time_us, step_times[sample.batch]);
    }
    if (sample.name == "forward.count") {
      EXPECT_EQ(sample.value, 2);
    }
    if (sample.name == "loss") {
      EXPECT_EQ(sample.value, 0.5 + sample.batch);
      EXPECT_GE(sample.time_us, step_times[sample.batch]);
    }
  }
}

TEST_F(AgentTest, AgentRule04_WhatAKilledProcessRecordedStillArrives) {
  const pid_t child = Record("killed", 0, [] {
    RecordSteps(20);
    raise(SIGKILL);
  });
  EXPECT_TRUE(WIFSIGNALED(Wait(child)));
  StartAgent();
  ASSERT_TRUE(WaitForClosed());
  EXPECT_TRUE(master_.writers().begin()->second.died);
  ExpectEachStepOnce(master_.writers(), 20);
}

// A child that begins later would join a writer of which nothing is taken any more.
TEST_F(AgentTest, AgentRule11_AWriterThatEndsSaysSoToItsForkedChildren) {
  const auto ended_words = [this] {
    std::multiset<std::uint32_t> words;
    for (const auto& entry : std::filesystem::directory_iterator(root_ + "/f1")) {
      std::ifstream header(entry.path() / spool::kHeaderFile, std::ios::binary);
      header.seekg(offsetof(spool::WriterHeader, ended));
      std::uint32_t word = 77;
      if (header.read(reinterpret_cast<char*>(&word), sizeof(word))) words.insert(word);
    }
    return words;
  };
  StartAgent();
  const pid_t living = RecordOn("living", "living");
  EXPECT_EQ(Wait(Record("ended", 0,
                        [] {
                          RecordSteps(3);
                          if (stepwell_close(20000) != 1) _exit(3);
                        })),
            0);
  EXPECT_EQ(ended_words(), (std::multiset<std::uint32_t>{0, 1}));
  Stop("living", living);
  ASSERT_TRUE(WaitForClosed());
  EXPECT_EQ(ended_words(), (std::multiset<std::uint32_t>{1, 1}));
}

// Not one for each sample, none while there is none, and one more at the end. How far apart they are
// is VisitPace's, and its test's: here a busy machine brings a visit late and the next one close.
TEST_F(AgentTest, AgentRule02_WhileThereIsDataAFrameIsSealedEachInterval) {
  constexpr std::int64_t kIntervalUs = 100'000;
  StartAgent([](AgentOptions& options) { options.frame_interval = absl::Milliseconds(100); });
  const absl::Time begin = absl::Now();
  const pid_t child = Record("paced", 0, [] {
    RecordSteps(300, 5000);
    usleep(1'000'000);
    RecordSteps(1);
    if (stepwell_close(20000) != 1) _exit(3);
  });
  EXPECT_EQ(Wait(child), 0);
  const std::int64_t most = (absl::Now() - begin) / absl::Microseconds(kIntervalUs);
  const Writers writers = master_.writers();
  ASSERT_EQ(writers.size(), 1u);
  const FakeMaster::Writer& writer = writers.begin()->second;
  // A second and a half of steps; on a busy machine fewer frames hold more.
  EXPECT_GE(writer.chunks.size(), 3u);
  EXPECT_LE(static_cast<std::int64_t>(writer.chunks.size()), most);
  for (const auto& [sequence, chunk] : writer.chunks) {
    FakeMaster::Writer of_one = writer;
    of_one.chunks = {{sequence, chunk}};
    EXPECT_FALSE(FakeMaster::SamplesOf(of_one).empty()) << "frame " << sequence;
  }
}

TEST_F(AgentTest, ARunLongerThanItsRingsLosesNothing) {
  StartAgent();
  const pid_t child = Record("long", 0, [] {
    RecordSteps(15000, 50);
    if (stepwell_dropped_count() != 0 || stepwell_close(20000) != 1) _exit(3);
  });
  EXPECT_EQ(Wait(child), 0);
  ExpectEachStepOnce(master_.writers(), 15000);
}

TEST_F(AgentTest, AStepWithMoreEventsThanARingHoldsIsOneTick) {
  StartAgent();
  constexpr int kScopes = 60000;
  const pid_t child = Record("wide", 0, [] {
    const stepwell_scope_id scope_id = stepwell_define_scope("op");
    const stepwell_series_id series =
        stepwell_define_series("training", "part", "1", STEPWELL_GAUGE, nullptr, 0);
    stepwell_step_begin();
    for (int i = 0; i < kScopes; ++i) {
      stepwell_scope scope;
      stepwell_scope_begin(&scope, scope_id);
      stepwell_scope_end(&scope);
      if (i % 1000 == 0) {
        stepwell_record(series, i);
        usleep(20000);
      }
    }
    stepwell_step_end(5);
    if (stepwell_dropped_count() != 0 || stepwell_close(20000) != 1) _exit(3);
  });
  EXPECT_EQ(Wait(child), 0);
  int records = 0;
  for (const FakeMaster::Sample& sample :
       FakeMaster::SamplesOf(master_.writers().begin()->second)) {
    EXPECT_EQ(sample.batch, 5) << sample.name;
    if (sample.name == "op.count") {
      EXPECT_EQ(sample.value, kScopes);
    }
    records += sample.name == "part" ? 1 : 0;
  }
  EXPECT_EQ(records, kScopes / 1000);
}

TEST_F(AgentTest, AMasterThatRestartsAndLosesMessagesGetsEverythingOnce) {
  StartAgent();
  const pid_t child = RecordCounted("restarts");
  for (int i = 0; i < 3; ++i) {
    const std::size_t seen = BatchesOf(master_.writers(), "step").size();
    ASSERT_TRUE(master_.WaitUntil(
        [&](const Writers& writers) { return BatchesOf(writers, "step").size() > seen + 20; }));
    const std::uint64_t swallowed = master_.writers().begin()->second.swallowed;
    master_.SwallowChunks(2);
    ASSERT_TRUE(master_.WaitUntil([&](const Writers& writers) {
      const FakeMaster::Writer& writer = writers.begin()->second;
      return writer.swallowed > swallowed && writer.committed >= writer.swallowed;
    }));
    master_.Stop();
    master_.Start();
  }
  const int steps = StopCounted("restarts", child);
  ExpectEachStepOnce(master_.writers(), steps);
  EXPECT_GE(master_.writers().begin()->second.open_count, 4);
}

// Writers that hold little leave their part of the bound to the one that holds much.
TEST_F(AgentTest, AMasterThatIsAwayCostsNothingWhileAllSpoolsTogetherFit) {
  master_.Stop();
  StartAgent([](AgentOptions& options) { options.spool_bytes_max = 1 << 20; });
  for (int rank = 1; rank <= 7; ++rank) {
    EXPECT_EQ(Wait(Record("away", rank, [] { RecordSteps(1); })), 0);
  }
  constexpr int kSteps = 15000;
  EXPECT_EQ(Wait(Record("away", 0,
                        [] {
                          RecordSteps(kSteps, 50);
                          if (stepwell_dropped_count() != 0) _exit(3);
                        })),
            0);
  master_.Start();
  ASSERT_TRUE(master_.WaitUntil(
      [](const Writers& writers) { return writers.size() == 8 && AllClosed(writers); }));
  std::size_t stored_bytes = 0;
  for (const auto& [id, writer] : master_.writers()) {
    EXPECT_THAT(writer.gaps, ::testing::IsEmpty());
    for (const auto& [sequence, chunk] : writer.chunks) stored_bytes += chunk.body().size();
  }
  // More than two of eight even shares.
  EXPECT_GT(stored_bytes, std::size_t{256} << 10);
  EXPECT_EQ(BatchesOf(master_.writers(), "step").size(), static_cast<std::size_t>(kSteps));
}

TEST_F(AgentTest, ARefusedWriterHarmsNoOther) {
  master_.RefuseTrial("unknown");
  StartAgent();
  const pid_t refused = Record("unknown", 0, [] {
    RecordSteps(10);
    if (stepwell_close(20000) == 1) _exit(3);  // and it does not wait so long
  });
  const pid_t healthy = Record("healthy", 0, [] {
    RecordSteps(200, 1000);
    if (stepwell_close(20000) != 1) _exit(3);
  });
  const absl::Time started = absl::Now();
  EXPECT_EQ(Wait(refused), 0);
  EXPECT_LT(absl::Now() - started, absl::Seconds(10));
  EXPECT_EQ(Wait(healthy), 0);
  ASSERT_EQ(master_.writers().size(), 1u);
  ExpectEachStepOnce(master_.writers(), 200);
}

TEST_F(AgentTest, AgentRule02_AMasterThatComesBackOlderIsSentTheSameBytesAgain) {
  StartAgent();
  const pid_t child = RecordCounted("rewound");
  ASSERT_TRUE(master_.WaitUntil([](const Writers& writers) {
    return !writers.empty() && writers.begin()->second.committed > 10;
  }));
  master_.Stop();
  master_.RewindAll(3);
  master_.Start();
  const int steps = StopCounted("rewound", child);
  ASSERT_TRUE(WaitForClosed());
  ExpectEachStepOnce(master_.writers(), steps);
  EXPECT_GE(master_.writers().begin()->second.resend_count, 5);
}

TEST_F(AgentTest, AgentRule03_AWriterWhoseSequencesTheMasterKnowsBetterIsRetired) {
  StartAgent();
  const pid_t child = RecordCounted("copied");
  ASSERT_TRUE(master_.WaitUntil([](const Writers& writers) {
    return !writers.empty() && writers.begin()->second.committed > 5;
  }));
  master_.Stop();
  std::uint64_t claimed = 0;
  master_.Change([&](Writers& writers) {
    claimed = writers.begin()->second.committed += 100000;
    writers.begin()->second.committed_crc = 77;
  });
  master_.Start();
  const int steps = StopCounted("copied", child);
  ASSERT_TRUE(WaitForClosed());
  const Writers writers = master_.writers();
  ASSERT_EQ(writers.size(), 2u);
  int gaps = 0;
  for (const auto& [id, writer] : writers) {
    if (writer.committed == claimed) continue;
    ASSERT_EQ(writer.gaps.size(), 1u);
    EXPECT_EQ(writer.gaps[0].cause(), pb::GAP_CAUSE_SPOOL_LOST);
    EXPECT_EQ(writer.gaps[0].first_sequence(), 1u);
    ++gaps;
  }
  EXPECT_EQ(gaps, 1);
  // Nothing twice. Only what was under way at the stop may be missing, and the gap tells of it;
  // what was sealed while the master was away has moved to the successor.
  const std::map<std::int32_t, int> stored = BatchesOf(writers, "step");
  for (const auto& [batch, count] : stored) EXPECT_EQ(count, 1) << batch;
  EXPECT_GE(static_cast<int>(stored.size()), steps - 20);
}

bool HasLocalMount() {
  std::ifstream file("/proc/self/mountinfo");
  const auto mounts = ParseMounts(std::string(std::istreambuf_iterator<char>(file), {}));
  if (!mounts.ok()) return false;
  return std::any_of(mounts->begin(), mounts->end(),
                     [](const Mount& mount) { return mount.where == Mount::Where::kLocal; });
}

TEST_F(AgentTest, SamplesTheMachineWithTheBatchOfTheTrialsLowestLiveRank) {
  master_.SetClockAhead(absl::Seconds(7));
  StartAgent([](AgentOptions& options) {
    options.trial = "sampled";
    options.attempt_key = "given";
    options.selection.SetInterval(absl::Milliseconds(100));
  });
  const pid_t low = Record("sampled", 1, [] {
    RecordSteps(5);
    sleep(2);
    stepwell_close(20000);
  });
  const pid_t high = Record("sampled", 2, [] {
    RecordSteps(50);
    sleep(2);
    stepwell_close(20000);
  });
  const pid_t other = Record("another", 0, [] {
    RecordSteps(50);
    sleep(2);
    stepwell_close(20000);
  });
  const auto sampler = [](const Writers& writers) -> const FakeMaster::Writer* {
    for (const auto& [id, writer] : writers) {
      if (writer.open.is_sampler()) return &writer;
    }
    return nullptr;
  };
  EXPECT_TRUE(master_.WaitUntil([&](const Writers& writers) {
    if (sampler(writers) == nullptr) return false;
    int matching = 0;
    for (const FakeMaster::Sample& sample : FakeMaster::SamplesOf(*sampler(writers))) {
      if (sample.name == "shared_with" && sample.batch == 4 && sample.value == 2) ++matching;
    }
    return matching >= 3;
  }));
  Wait(low);
  Wait(high);
  Wait(other);
  StopAgent();
  const Writers writers = master_.writers();
  ASSERT_NE(sampler(writers), nullptr);
  const FakeMaster::Writer& writer = *sampler(writers);
  EXPECT_TRUE(writer.closed);
  EXPECT_FALSE(writer.died);
  EXPECT_TRUE(writer.wrongs.empty());
  EXPECT_EQ(writer.open.external_id(), "sampled");
  std::map<std::string, int> counts;
  std::map<std::int64_t, int> ticks;
  for (const FakeMaster::Sample& sample : FakeMaster::SamplesOf(writer)) {
    ++counts[sample.metric_group + "/" + sample.name];
    ++ticks[sample.time_us];
  }
  for (const char* name :
       {"cpu/cpu_util_simple", "memory/memory_free", "disk/disk_iops", "disk/disk_throughput_read",
        "disk/disk_throughput_write", "network/net_throughput_sent", "network/net_throughput_recv",
        "agent/shared_with"}) {
    EXPECT_GE(counts[name], 3) << name;
  }
  // Each 10 s, and at the end; in a root that is no mount of its own (chroot) there are none to see.
  EXPECT_GE(counts["disk/disk_util"], HasLocalMount() ? 2 : 0);
  // What the processes themselves use is their own writers', and of the sampled trial alone.
  for (const auto& [id, rank] : writers) {
    if (rank.open.is_sampler()) continue;
    std::map<std::string, int> own;
    for (const FakeMaster::Sample& sample : FakeMaster::SamplesOf(rank)) {
      ++own[sample.metric_group + "/" + sample.name];
    }
    const bool sampled = rank.open.external_id() == "sampled";
    EXPECT_EQ(own["memory/memory_process_resident"] >= 3, sampled) << rank.open.external_id();
    EXPECT_EQ(own["cpu/cpu_util_process"] >= 2, sampled) << rank.open.external_id();
    EXPECT_EQ(own["disk/disk_process_write"] >= 2, sampled) << rank.open.external_id();
  }
  // The first tick comes without rates, 100 ms before the second.
  EXPECT_EQ(counts["agent/shared_with"], static_cast<int>(ticks.size()));
  EXPECT_GE(counts["agent/clock_offset"], 3);
  for (const FakeMaster::Sample& sample : FakeMaster::SamplesOf(writer)) {
    if (sample.name == "clock_offset") {
      EXPECT_NEAR(sample.value, 7, 5);
    }
    if (sample.name == "clock_offset_error") {
      EXPECT_LT(sample.value, 5);
    }
  }
  EXPECT_LE(counts["disk/disk_iops"], static_cast<int>(ticks.size()) - 1);
  EXPECT_NEAR(static_cast<double>(std::next(ticks.begin())->first - ticks.begin()->first), 1e5,
              8e4);
}

// The monotonic clock of another boot cannot be asked: what the recorder noted of both clocks counts.
TEST_F(AgentTest, AgentRule12_WhatWasRecordedBeforeARebootKeepsItsTimes) {
  const pid_t child = Record("rebooted", 0, [] { RecordSteps(20); });
  EXPECT_EQ(Wait(child), 0);
  const std::filesystem::path format = std::filesystem::path(root_) / "f1";
  const std::filesystem::path json =
      std::filesystem::directory_iterator(format)->path() / "writer.json";
  std::ifstream in(json);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  absl::StatusOr<WriterIdentity> who = ParseWriterJson(text);
  ASSERT_TRUE(who.ok()) << who.status();
  const std::string boot = "00000000-1111-2222-3333-444444444444";
  ASSERT_EQ(who->boot_id, BootId());
  // A day ago, on a machine that had then run for as long as this one has now.
  who->boot_id = boot;
  who->opened_time_us -= absl::ToInt64Microseconds(absl::Hours(24));
  std::ofstream(json, std::ios::trunc) << ToWriterJson(*who);
  StartAgent();
  ASSERT_TRUE(WaitForClosed());
  const FakeMaster::Writer writer = master_.writers().begin()->second;
  EXPECT_EQ(writer.open.machine(), boot);
  ExpectEachStepOnce(master_.writers(), 20);
  for (const FakeMaster::Sample& sample : FakeMaster::SamplesOf(writer)) {
    EXPECT_GE(sample.time_us, who->opened_time_us) << sample.name;
    EXPECT_LE(sample.time_us, who->opened_time_us + 60'000'000) << sample.name;
  }
}

TEST_F(AgentTest, AgentRule07_OneAgentServesADirectory) {
  StartAgent();
  AgentOptions options;
  options.server = master_.address();
  options.spool_dir = root_;
  // In another process: a process does not see its own lock.
  const pid_t child = fork();
  if (child == 0) {
    _exit(absl::IsAlreadyExists(Agent::Create(options, RealClock::Get()).status()) ? 0 : 1);
  }
  EXPECT_EQ(Wait(child), 0);
}

TEST_F(AgentTest, RefusesARootThatOthersMayEnterOrThatIsALink) {
  AgentOptions options;
  options.server = master_.address();
  options.spool_dir = root_ + "/link";
  std::filesystem::create_directory(root_ + "/real");
  std::filesystem::create_symlink(root_ + "/real", options.spool_dir);
  EXPECT_FALSE(Agent::Create(options, RealClock::Get()).ok());
  options.spool_dir = root_ + "/real";
  std::filesystem::permissions(options.spool_dir, std::filesystem::perms::all);
  const absl::Status wide = Agent::Create(options, RealClock::Get()).status();
  EXPECT_NE(wide.message().find("may be entered by others"), std::string::npos) << wide;
}

TEST_F(AgentTest, ForeignThingsInTheRootAreLeftAlone) {
  const std::filesystem::path format = std::filesystem::path(root_) / "f1";
  std::filesystem::create_directories(format);
  std::filesystem::permissions(format, std::filesystem::perms::owner_all);
  const auto make = [&](const std::string& json) {
    const std::filesystem::path made = format / Uuid::Random().ToText();
    std::filesystem::create_directory(made);
    std::ofstream(made / "writer.json") << json;
    return made;
  };
  make("no json");
  make(R"({"format":1,"writer":")" + Uuid::Random().ToText() + R"(","trial":"t"})");
  std::filesystem::create_symlink("/etc", format / Uuid::Random().ToText());
  std::ofstream(format / Uuid::Random().ToText()) << "a file";
  // A writer that is a writer in name alone: its header is zeros.
  const Uuid id = Uuid::Random();
  std::filesystem::create_directory(format / id.ToText());
  for (const char* name : {"lock", "header", "names"}) {
    std::ofstream(format / id.ToText() / name) << std::string(4096, '\0');
  }
  std::ofstream(format / id.ToText() / "writer.json")
      << R"({"format":1,"writer":")" + id.ToText() + R"(","trial":"t"})";
  StartAgent();
  const pid_t child = Record("healthy", 0, [] {
    RecordSteps(20);
    if (stepwell_close(20000) != 1) _exit(3);
  });
  EXPECT_EQ(Wait(child), 0);
  Writers writers = master_.writers();
  writers.erase(id.ToBytes());
  ASSERT_EQ(writers.size(), 1u);
  ExpectEachStepOnce(writers, 20);
}

}  // namespace
}  // namespace stepwell::agent
