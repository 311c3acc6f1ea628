// A rank whose rings hold nothing new is looked at, not visited. The failure that this must survive: what
// no ring tells (a death, a tick of the process that is due, a directive) waits for as long as it is quiet.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <vector>

#include "tests/unit/agent/line/agent_fixture.h"

namespace stepwell::agent {
namespace {

class QuietRankTest : public AgentTest {
 protected:
  // As people run it: the fixture's own visits come every 10 ms.
  void StartCalm(bool sampling) {
    StartAgent([sampling](AgentOptions& options) {
      options.frame_interval = absl::Milliseconds(100);
      options.auto_sampling = sampling;
    });
  }
  // One step, and no more until it is killed.
  pid_t RecordOnce(const std::string& trial) {
    const pid_t child = Record(trial, 0, [] {
      RecordSteps(1);
      while (true) pause();
    });
    EXPECT_TRUE(master_.WaitUntil(
        [&](const Writers& writers) { return !BatchesOf(Of(writers, trial), "step").empty(); }));
    return child;
  }
  static Writers Of(Writers writers, const std::string& trial) {
    std::erase_if(writers, [&](const auto& entry) {
      return entry.second.open.external_id() != trial || entry.second.open.is_sampler();
    });
    return writers;
  }
};

TEST_F(QuietRankTest, ItsDeathIsSeen) {
  StartCalm(/*sampling=*/false);
  const pid_t child = RecordOnce("killed");
  kill(child, SIGKILL);
  Wait(child);
  const absl::Time killed = absl::Now();
  ASSERT_TRUE(
      master_.WaitUntil([&](const Writers& writers) { return AllClosed(Of(writers, "killed")); }));
  // Half a second is the bound; a machine that is busy has its own.
  EXPECT_LT(absl::Now() - killed, absl::Seconds(10));
  EXPECT_TRUE(Of(master_.writers(), "killed").begin()->second.died);
}

// Beside one that ended while nobody takes it.
TEST_F(QuietRankTest, ItsDeathIsSeenBesideOneThatWasRefused) {
  master_.RefuseTrial("unknown");
  StartCalm(/*sampling=*/false);
  EXPECT_EQ(Wait(Record("unknown", 0, [] { RecordSteps(1); })), 0);
  const pid_t child = RecordOnce("killed");
  kill(child, SIGKILL);
  Wait(child);
  EXPECT_TRUE(
      master_.WaitUntil([&](const Writers& writers) { return AllClosed(Of(writers, "killed")); }));
}

// Its process is asked each 100 ms all the same.
TEST_F(QuietRankTest, ItsProcessIsSampledAtEachTick) {
  setenv("STEPWELL_INTERVAL", "100ms", 1);
  StartCalm(/*sampling=*/true);
  const pid_t child = RecordOnce("sampled");
  unsetenv("STEPWELL_INTERVAL");
  const auto times = [&](const Writers& writers) {
    std::vector<std::int64_t> times_us;
    for (const auto& [id, writer] : Of(writers, "sampled")) {
      for (const FakeMaster::Sample& sample : FakeMaster::SamplesOf(writer)) {
        if (sample.name == "cpu_process_threads") times_us.push_back(sample.time_us);
      }
    }
    return times_us;
  };
  EXPECT_TRUE(
      master_.WaitUntil([&](const Writers& writers) { return times(writers).size() > 21; }));
  const std::vector<std::int64_t> times_us = times(master_.writers());
  std::vector<std::int64_t> gaps_us;
  for (std::size_t i = 1; i < times_us.size(); ++i)
    gaps_us.push_back(times_us[i] - times_us[i - 1]);
  std::nth_element(gaps_us.begin(), gaps_us.begin() + gaps_us.size() / 2, gaps_us.end());
  // Visits that come without being asked for are 500 ms apart.
  EXPECT_LT(gaps_us[gaps_us.size() / 2], 300'000);
  kill(child, SIGKILL);
  Wait(child);
}

}  // namespace
}  // namespace stepwell::agent
