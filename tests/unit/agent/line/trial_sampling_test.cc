// Each trial that records here has this machine sampled for it, as it asked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>

#include "absl/time/clock.h"
#include "client/agent/writer_identity.h"
#include "client/recorder/src/spool_format.h"
#include "tests/unit/agent/line/agent_fixture.h"

namespace stepwell::agent {
namespace {

using Samples = std::vector<FakeMaster::Sample>;

class TrialSamplingTest : public AgentTest {
 protected:
  void StartSampling(std::function<void(AgentOptions&)> change = {}) {
    StartAgent([&](AgentOptions& options) {
      options.auto_sampling = true;
      options.selection.SetInterval(absl::Milliseconds(100));
      if (change) change(options);
    });
  }
  static std::vector<FakeMaster::Writer> SamplersOf(const Writers& writers,
                                                    const std::string& trial) {
    std::vector<FakeMaster::Writer> found;
    for (const auto& [id, writer] : writers) {
      if (writer.open.is_sampler() && writer.open.external_id() == trial) found.push_back(writer);
    }
    return found;
  }
  // Of the trial's one sampler.
  static std::vector<double> ValuesOf(const Writers& writers, const std::string& trial,
                                      const std::string& name) {
    std::vector<double> values;
    for (const FakeMaster::Writer& sampler : SamplersOf(writers, trial)) {
      for (const FakeMaster::Sample& sample : FakeMaster::SamplesOf(sampler)) {
        if (sample.name == name) values.push_back(sample.value);
      }
    }
    return values;
  }
  bool WaitForTicks(const std::string& trial, std::size_t count) {
    return master_.WaitUntil([&](const Writers& writers) {
      return ValuesOf(writers, trial, "shared_with").size() >= count;
    });
  }
  bool WaitForValue(const std::string& trial, const std::string& name, double value) {
    return master_.WaitUntil([&](const Writers& writers) {
      const std::vector<double> values = ValuesOf(writers, trial, name);
      return !values.empty() && values.back() == value;
    });
  }
  // What a recorder would have written for a trial that is so. Before any agent: its directory.
  std::string Rewrite(const std::string& trial,
                      const std::function<void(WriterIdentity&)>& change) {
    for (const auto& entry : std::filesystem::directory_iterator(root_ + "/f1")) {
      const std::filesystem::path json = entry.path() / "writer.json";
      std::ifstream in(json);
      const std::string text((std::istreambuf_iterator<char>(in)), {});
      absl::StatusOr<WriterIdentity> who = ParseWriterJson(text);
      if (!who.ok() || who->trial != trial) continue;
      change(*who);
      std::ofstream(json, std::ios::trunc) << ToWriterJson(*who);
      return entry.path();
    }
    ADD_FAILURE() << "no writer of " << trial;
    return "";
  }
  void Wish(const std::string& trial, const SamplingWish& wish) {
    Rewrite(trial, [&](WriterIdentity& who) { who.sampling = wish; });
  }
  // As if all that it did had been so long ago.
  void Age(const std::string& trial, std::int64_t seconds, bool same_boot) {
    const std::string directory = Rewrite(trial, [&](WriterIdentity& who) {
      if (!same_boot) who.boot_id = "11111111-2222-3333-4444-555555555555";
    });
    std::fstream header(directory + "/header", std::ios::in | std::ios::out | std::ios::binary);
    for (const std::size_t offset :
         {offsetof(spool::WriterHeader, opened_ns), offsetof(spool::WriterHeader, last_step_ns),
          offsetof(spool::WriterHeader, closed_ns)}) {
      std::int64_t time_ns = 0;
      header.seekg(static_cast<std::streamoff>(offset));
      header.read(reinterpret_cast<char*>(&time_ns), sizeof(time_ns));
      time_ns -= seconds * 1'000'000'000;
      header.seekp(static_cast<std::streamoff>(offset));
      header.write(reinterpret_cast<const char*>(&time_ns), sizeof(time_ns));
    }
    EXPECT_TRUE(header.good());
  }
  // Until it records.
  pid_t RecordFirst(const std::string& trial) {
    const std::string there = root_ + "/there-" + trial;
    const std::string stop = root_ + "/stop-" + trial;
    const pid_t child = Record(trial, 0, [there, stop] {
      std::ofstream(there) << "";
      for (int i = 0; i < 6000 && !std::filesystem::exists(stop); ++i) RecordSteps(1, 10000);
      stepwell_close(2000);
    });
    for (int i = 0; i < 6000 && !std::filesystem::exists(there); ++i) usleep(10000);
    return child;
  }
};

TEST_F(TrialSamplingTest, AgentRule07_TwoTrialsAreEachSampledAndToldThatTheyAreTwo) {
  StartSampling();
  const pid_t one = RecordOn("one", "one");
  ASSERT_TRUE(WaitForTicks("one", 2));
  EXPECT_EQ(ValuesOf(master_.writers(), "one", "shared_with").front(), 1);
  const pid_t two = RecordOn("two", "two");
  ASSERT_TRUE(WaitForTicks("two", 3));
  EXPECT_EQ(ValuesOf(master_.writers(), "two", "shared_with").front(), 2);
  ASSERT_TRUE(WaitForValue("one", "shared_with", 2));
  // It ends with its last rank, and the other is told.
  Stop("two", two);
  ASSERT_TRUE(master_.WaitUntil([](const Writers& writers) {
    const auto found = SamplersOf(writers, "two");
    return found.size() == 1 && found[0].closed && !found[0].died;
  }));
  ASSERT_TRUE(WaitForValue("one", "shared_with", 1));
  Stop("one", one);
  ASSERT_TRUE(WaitForClosed());
  const Writers writers = master_.writers();
  EXPECT_EQ(writers.size(), 4u);
  for (const auto& [id, writer] : writers) EXPECT_TRUE(writer.wrongs.empty());
}

TEST_F(TrialSamplingTest, LastsUntilTheLastRankOfTheTrialHasEnded) {
  StartSampling();
  const pid_t low = RecordOn("low", "t", 0, "run");
  ASSERT_TRUE(WaitForTicks("t", 1));
  const pid_t high = RecordOn("high", "t", 1, "run");
  ASSERT_TRUE(master_.WaitUntil([](const Writers& writers) { return writers.size() == 3; }));
  Stop("low", low);
  const std::size_t count = ValuesOf(master_.writers(), "t", "shared_with").size();
  ASSERT_TRUE(WaitForTicks("t", count + 5));
  EXPECT_FALSE(SamplersOf(master_.writers(), "t")[0].closed);
  Stop("high", high);
  ASSERT_TRUE(WaitForClosed());
  EXPECT_EQ(SamplersOf(master_.writers(), "t").size(), 1u);
  // A run that comes later has a sampler of its own.
  std::filesystem::remove(root_ + "/stop-low");
  const pid_t next = RecordOn("low", "t", 0, "next run");
  ASSERT_TRUE(master_.WaitUntil(
      [](const Writers& writers) { return SamplersOf(writers, "t").size() == 2; }));
  Stop("low", next);
  ASSERT_TRUE(WaitForClosed());
}

TEST_F(TrialSamplingTest, AgentRule10_ARunOfAMomentHasItsTicks) {
  StartSampling();
  EXPECT_EQ(Wait(Record("brief", 0,
                        [] {
                          RecordSteps(5, 10000);
                          stepwell_close(10000);
                        })),
            0);
  ASSERT_TRUE(WaitForClosed());
  EXPECT_GE(ValuesOf(master_.writers(), "brief", "memory_free").size(), 2u);
}

// Closed before any agent is there to see it: the machine as it is when the agent comes.
TEST_F(TrialSamplingTest, AgentRule10_ARunThatIsOverWhenItIsFoundHasASample) {
  EXPECT_EQ(Wait(Record(
                "brief", 0,
                [] {
                  RecordSteps(5);
                  stepwell_close(0);
                },
                "run 7")),
            0);
  const std::int64_t ended_us = absl::GetCurrentTimeNanos() / 1000;
  StartSampling();
  ASSERT_TRUE(WaitForTicks("brief", 1));
  ASSERT_TRUE(WaitForClosed());
  const auto samplers = SamplersOf(master_.writers(), "brief");
  ASSERT_EQ(samplers.size(), 1u);
  EXPECT_EQ(samplers[0].open.attempt_key(), "run 7");
  EXPECT_FALSE(samplers[0].died);
  EXPECT_FALSE(ValuesOf(master_.writers(), "brief", "memory_free").empty());
  for (const FakeMaster::Sample& sample : FakeMaster::SamplesOf(samplers[0])) {
    EXPECT_GE(sample.time_us, ended_us) << "a time that was not";
  }
}

TEST_F(TrialSamplingTest, AProcessThatDiedAMomentAgoHasASample) {
  EXPECT_EQ(Wait(Record("died", 0, [] { RecordSteps(5); })), 0);
  StartSampling();
  ASSERT_TRUE(WaitForTicks("died", 1));
  ASSERT_TRUE(WaitForClosed());
  EXPECT_EQ(SamplersOf(master_.writers(), "died").size(), 1u);
}

// A spool that waited for an agent says nothing of the machine as it is now.
TEST_F(TrialSamplingTest, ARunThatIsLongOverIsNotSampled) {
  struct Row {
    const char* name;
    std::int64_t seconds_ago;
    bool same_boot;
    bool is_upload;
    SamplingWish wish;
  };
  const Row rows[] = {
      {"long-ago", 6, true, false, {}},        {"to-come", -60, true, false, {}},
      {"another-boot", 0, false, false, {}},   {"unwanted", 0, true, false, {.on = false}},
      {"uploaded-by-hand", 0, true, true, {}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(Wait(Record(row.name, 0,
                          [] {
                            RecordSteps(5);
                            stepwell_close(0);
                          })),
              0);
    Wish(row.name, row.wish);
    Age(row.name, row.seconds_ago, row.same_boot);
    StartSampling([&](AgentOptions& options) { options.upload = row.is_upload; });
    ASSERT_TRUE(WaitForClosed());
    StopAgent();
    EXPECT_TRUE(SamplersOf(master_.writers(), row.name).empty());
  }
}

TEST_F(TrialSamplingTest, IsAsTheTrialAsked) {
  const pid_t dense = RecordFirst("dense");
  const pid_t quiet = RecordFirst("quiet");
  Wish("dense", {.interval_us = 20'000,
                 .groups = {"cpu", "no such group"},
                 .without = {"cpu_load_1m"},
                 .with = {"cpu_util_core"}});
  Wish("quiet", {.on = false});
  StartSampling([](AgentOptions& options) { options.selection.SetInterval(absl::Hours(1)); });
  ASSERT_TRUE(WaitForTicks("dense", 20));
  Stop("dense", dense);
  Stop("quiet", quiet);
  ASSERT_TRUE(WaitForClosed());
  const Writers writers = master_.writers();
  EXPECT_FALSE(ValuesOf(writers, "dense", "cpu_util_simple").empty());
  EXPECT_FALSE(ValuesOf(writers, "dense", "cpu_util_core").empty());
  EXPECT_FALSE(ValuesOf(writers, "dense", "cpu_load_5m").empty());
  EXPECT_TRUE(ValuesOf(writers, "dense", "cpu_load_1m").empty());
  EXPECT_TRUE(ValuesOf(writers, "dense", "memory_free").empty());
  EXPECT_TRUE(SamplersOf(writers, "quiet").empty());
  // Nor is the process itself.
  for (const auto& [id, writer] : writers) {
    int own = 0;
    for (const FakeMaster::Sample& sample : FakeMaster::SamplesOf(writer)) {
      own += sample.name == "cpu_util_process" ? 1 : 0;
    }
    EXPECT_EQ(own > 0, writer.open.external_id() == "dense" && !writer.open.is_sampler());
  }
}

// What no agent sampled is no hole that nobody counts: the next one finds where the last tick was.
TEST_F(TrialSamplingTest, WhatLiesBetweenTwoAgentsIsCountedAsLate) {
  const pid_t child = RecordFirst("t");
  const auto on_demand = [](AgentOptions& options) { options.on_demand = true; };
  StartSampling(on_demand);
  ASSERT_TRUE(WaitForTicks("t", 5));
  StopAgent();
  ASSERT_EQ(SamplersOf(master_.writers(), "t").size(), 1u);
  const auto times_of = [](const FakeMaster::Writer& sampler) {
    std::set<std::int64_t> times;
    for (const FakeMaster::Sample& sample : FakeMaster::SamplesOf(sampler)) {
      if (sample.name == "shared_with") times.insert(sample.time_us);
    }
    return times;
  };
  const std::int64_t last_us = *times_of(SamplersOf(master_.writers(), "t").front()).rbegin();
  // Five intervals, of which four ticks are missing at least.
  const absl::Time until = absl::FromUnixMicros(last_us) + absl::Milliseconds(520);
  while (absl::Now() < until) usleep(10000);
  StartSampling(on_demand);
  ASSERT_TRUE(master_.WaitUntil([&](const Writers& writers) {
    const auto samplers = SamplersOf(writers, "t");
    return samplers.size() == 2 && times_of(samplers[0]).size() + times_of(samplers[1]).size() > 8;
  }));
  Stop("t", child);
  ASSERT_TRUE(WaitForClosed());
  std::vector<pb::Loss> late;
  std::int64_t first_us = 0;
  for (const FakeMaster::Writer& sampler : SamplersOf(master_.writers(), "t")) {
    if (*times_of(sampler).begin() > last_us) first_us = *times_of(sampler).begin();
    for (const auto& [sequence, chunk] : sampler.chunks) {
      pb::ChunkBody body;
      ASSERT_TRUE(body.ParseFromString(chunk.body()));
      for (const pb::Loss& loss : body.losses()) {
        if (loss.reason() == "ticks while no agent ran") late.push_back(loss);
      }
    }
  }
  ASSERT_EQ(late.size(), 1u);
  EXPECT_EQ(late[0].cause(), pb::GAP_CAUSE_LATE);
  EXPECT_EQ(late[0].first_time_us(), last_us);
  EXPECT_EQ(late[0].last_time_us(), first_us);
  // Of so many ticks, each of what a tick of this machine holds: memory alone has five.
  EXPECT_GE(late[0].sample_count(), 4 * 5u);
  EXPECT_LE(late[0].sample_count(),
            static_cast<std::uint64_t>(first_us - last_us) / 100'000 * 1000);
}

// An agent that leaves while a trial runs on tells of its process up to then, and what it owes.
TEST_F(TrialSamplingTest, AgentRule10_AProcessHasItsLastTickWhenTheAgentLeaves) {
  const pid_t child = RecordFirst("t");
  const auto count_of = [](const Writers& writers, const std::string& name) {
    std::size_t count = 0;
    for (const auto& [id, writer] : writers) {
      for (const FakeMaster::Sample& sample : FakeMaster::SamplesOf(writer)) {
        count += sample.name == name ? 1 : 0;
      }
    }
    return count;
  };
  const char kOwn[] = "cpu_process_threads";
  StartSampling([](AgentOptions& options) { options.selection.SetInterval(absl::Hours(1)); });
  // The first one, and the first with rates.
  ASSERT_TRUE(
      master_.WaitUntil([&](const Writers& writers) { return count_of(writers, kOwn) >= 2; }));
  // Steps are 10 ms apart: long enough after those for a rate.
  const std::size_t steps = count_of(master_.writers(), "step");
  ASSERT_TRUE(master_.WaitUntil(
      [&](const Writers& writers) { return count_of(writers, "step") >= steps + 20; }));
  EXPECT_EQ(count_of(master_.writers(), kOwn), 2u);
  StopAgent();
  EXPECT_EQ(count_of(master_.writers(), kOwn), 3u);
  Stop("t", child);
}

TEST_F(TrialSamplingTest, ADirectiveWithoutGroupsKeepsTheTrials) {
  const pid_t child = RecordFirst("t");
  Wish("t", {.interval_us = 20'000, .groups = {"cpu"}});
  pb::Directive on;
  on.mutable_profiling()->set_on(true);
  master_.DirectAtOpen(FakeMaster::Whom::kSamplers, "t", {on});
  StartSampling();
  ASSERT_TRUE(WaitForTicks("t", 20));
  Stop("t", child);
  ASSERT_TRUE(WaitForClosed());
  EXPECT_FALSE(ValuesOf(master_.writers(), "t", "cpu_util_simple").empty());
  EXPECT_TRUE(ValuesOf(master_.writers(), "t", "memory_free").empty());
}

TEST_F(TrialSamplingTest, GoesToTheMasterOfTheTrialWithoutTheAgentsToken) {
  FakeMaster other;
  other.Start();
  StartSampling([](AgentOptions& options) { options.token = "ours"; });
  const pid_t at_home = RecordOn("home", "home");
  ASSERT_TRUE(WaitForTicks("home", 1));
  EXPECT_EQ(SamplersOf(master_.writers(), "home").front().open.token(), "ours");
  Stop("home", at_home);
  const pid_t child = RecordOn("there", "there", 0, "", other.address());
  ASSERT_TRUE(other.WaitUntil(
      [](const Writers& writers) { return SamplersOf(writers, "there").size() == 1; }));
  EXPECT_EQ(SamplersOf(other.writers(), "there").front().open.token(), "");
  Stop("there", child);
  ASSERT_TRUE(other.WaitUntil(AllClosed));
  EXPECT_TRUE(SamplersOf(master_.writers(), "there").empty());
  StopAgent();
  other.Stop();
}

TEST_F(TrialSamplingTest, AgentRule07_TheMastersCountOfTrialsGoesBeforeTheAgents) {
  pb::Directive seven;
  seven.mutable_sampling()->set_on(true);
  seven.mutable_sampling()->set_shared_with(7);
  master_.DirectAtOpen(FakeMaster::Whom::kSamplers, "t", {seven});
  StartSampling();
  const pid_t child = RecordOn("t", "t");
  ASSERT_TRUE(WaitForValue("t", "shared_with", 7));
  pb::Directive unknown;
  unknown.mutable_sampling()->set_on(true);
  master_.DirectNow(FakeMaster::Whom::kSamplers, "t", unknown);
  ASSERT_TRUE(WaitForValue("t", "shared_with", 1));
  // Another agent does it.
  pb::Directive off;
  off.mutable_sampling()->set_on(false);
  master_.DirectNow(FakeMaster::Whom::kSamplers, "t", off);
  Stop("t", child);
  ASSERT_TRUE(WaitForClosed());
}

TEST_F(TrialSamplingTest, ACrashedAgentsSamplerIsTakenUpWhileItsTrialLives) {
  StartSampling();
  const pid_t child = RecordOn("t", "t");
  ASSERT_TRUE(WaitForTicks("t", 2));
  StopAgent();
  // Stopped in order it is closed; as after a crash:
  std::string sampler;
  for (const auto& entry : std::filesystem::directory_iterator(root_ + "/f1")) {
    if (!std::filesystem::exists(entry.path() / "sampler.closed")) continue;
    std::filesystem::remove(entry.path() / "sampler.closed");
    sampler = entry.path();
    std::filesystem::remove(entry.path() / "done");
  }
  ASSERT_FALSE(sampler.empty());
  const std::size_t count = ValuesOf(master_.writers(), "t", "shared_with").size();
  StartSampling();
  ASSERT_TRUE(WaitForTicks("t", count + 3));
  EXPECT_EQ(SamplersOf(master_.writers(), "t").size(), 1u);
  Stop("t", child);
  ASSERT_TRUE(WaitForClosed());
}

}  // namespace
}  // namespace stepwell::agent
