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

// One visit before the machine is read, so that one frame has both; no ring says that this is due.
TEST_F(QuietRankTest, ItsProcessIsAskedJustBeforeTheMachine) {
  StartCalm(/*sampling=*/true);
  const pid_t child = RecordOnce("sampled");
  const auto times_of = [](const Writers& writers, const std::string& name) {
    std::vector<std::int64_t> times_us;
    for (const auto& [id, writer] : writers) {
      for (const FakeMaster::Sample& sample : FakeMaster::SamplesOf(writer)) {
        if (sample.name == name) times_us.push_back(sample.time_us);
      }
    }
    return times_us;
  };
  EXPECT_TRUE(master_.WaitUntil([&](const Writers& writers) {
    return times_of(writers, "cpu_process_threads").size() >= 6 &&
           times_of(writers, "memory_free").size() >= 7;
  }));
  const Writers writers = master_.writers();
  const std::vector<std::int64_t> machine_us = times_of(writers, "memory_free");
  std::vector<std::int64_t> ahead_us;
  for (const std::int64_t time_us : times_of(writers, "cpu_process_threads")) {
    const auto next = std::upper_bound(machine_us.begin(), machine_us.end(), time_us);
    if (next != machine_us.end()) ahead_us.push_back(*next - time_us);
  }
  ASSERT_GE(ahead_us.size(), 5u);
  // The first two are not on the grid. Asked with the machine, it would be most of a second.
  std::nth_element(ahead_us.begin(), ahead_us.begin() + ahead_us.size() / 2, ahead_us.end());
  EXPECT_LT(ahead_us[ahead_us.size() / 2], 500'000);
  kill(child, SIGKILL);
  Wait(child);
}

}  // namespace
}  // namespace stepwell::agent
