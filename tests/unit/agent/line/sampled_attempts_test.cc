// Which attempt of a trial a machine's samples lie in.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/unit/agent/line/agent_fixture.h"

namespace stepwell::agent {
namespace {

// Two runs of a trial under one agent.
class SampledAttemptsTest : public AgentTest {
 protected:
  // Records until StopRun, at most a minute.
  pid_t StartRun(const std::string& attempt_key) {
    const std::string stop = StopFile(attempt_key);
    return Record(
        "sampled", 0,
        [stop] {
          for (int i = 0; i < 6000 && !std::filesystem::exists(stop); ++i) RecordSteps(1, 10000);
          if (stepwell_close(20000) != 1) _exit(3);
        },
        attempt_key);
  }
  void StopRun(pid_t run, const std::string& attempt_key) {
    std::ofstream(StopFile(attempt_key)) << "";
    EXPECT_EQ(Wait(run), 0);
  }
  std::string StopFile(const std::string& attempt_key) { return root_ + "/stop-" + attempt_key; }
  static std::vector<FakeMaster::Writer> SamplersOf(const Writers& writers,
                                                    const std::string& attempt_key) {
    std::vector<FakeMaster::Writer> found;
    for (const auto& [id, writer] : writers) {
      if (writer.open.is_sampler() && writer.open.attempt_key() == attempt_key) {
        found.push_back(writer);
      }
    }
    return found;
  }
  static std::vector<std::int64_t> TimesOf(const FakeMaster::Writer& writer,
                                           const std::string& name) {
    std::vector<std::int64_t> times;
    for (const FakeMaster::Sample& sample : FakeMaster::SamplesOf(writer)) {
      if (sample.name == name) times.push_back(sample.time_us);
    }
    return times;
  }
  // Three more than there are now.
  bool WaitForTicks(const std::string& attempt_key) {
    const auto count = [&](const Writers& writers) {
      const auto found = SamplersOf(writers, attempt_key);
      return found.empty() ? 0 : TimesOf(found[0], "cpu_util_simple").size();
    };
    const std::size_t wanted = count(master_.writers()) + 3;
    return master_.WaitUntil([&](const Writers& writers) { return count(writers) >= wanted; });
  }
};

TEST_F(SampledAttemptsTest, AgentRule12_HaveASamplerWriterEachAndNoTickBetweenThemIsMissing) {
  StartAgent([](AgentOptions& options) {
    options.trial = "sampled";
    options.selection.SetInterval(absl::Milliseconds(100));
  });
  ASSERT_TRUE(WaitForTicks(""));
  const pid_t first = StartRun("first");
  ASSERT_TRUE(WaitForTicks("first"));
  const pid_t second = StartRun("second");
  ASSERT_TRUE(WaitForTicks("second"));
  // The older run outlives the newer one, and does not take the sampler back.
  StopRun(second, "second");
  ASSERT_TRUE(WaitForTicks("second"));
  StopRun(first, "first");
  StopAgent();
  std::int64_t ended_us = 0;
  for (const char* key : {"", "first", "second"}) {
    SCOPED_TRACE(std::string("key ") + key);
    const auto found = SamplersOf(master_.writers(), key);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_TRUE(found[0].closed);
    EXPECT_FALSE(found[0].died);
    EXPECT_TRUE(found[0].wrongs.empty());
    const std::vector<std::int64_t> ticks = TimesOf(found[0], "shared_with");
    EXPECT_GT(ticks.front(), ended_us);
    // The sensors were handed over: rates from the first tick on.
    if (ended_us != 0) {
      EXPECT_EQ(TimesOf(found[0], "cpu_util_simple").front(), ticks.front());
    }
    ended_us = ticks.back();
  }
}

TEST_F(SampledAttemptsTest, AnAgentThatWasGivenAKeyKeepsIt) {
  StartAgent([](AgentOptions& options) {
    options.trial = "sampled";
    options.attempt_key = "given";
    options.selection.SetInterval(absl::Milliseconds(100));
  });
  const pid_t run = StartRun("another");
  ASSERT_TRUE(master_.WaitUntil(
      [](const Writers& writers) { return !BatchesOf(writers, "step").empty(); }));
  ASSERT_TRUE(WaitForTicks("given"));
  StopRun(run, "another");
  StopAgent();
  EXPECT_EQ(SamplersOf(master_.writers(), "given").size(), 1u);
  EXPECT_TRUE(SamplersOf(master_.writers(), "another").empty());
}

}  // namespace
}  // namespace stepwell::agent
