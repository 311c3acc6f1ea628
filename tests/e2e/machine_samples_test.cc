// When the machine is sampled for a trial: from the Open of its rank to its Close, by what the trial
// itself saw of the two.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <iostream>

#include "absl/time/clock.h"
#include "tests/e2e/started_agent.h"

namespace stepwell::testing {
namespace {

using ::testing::SizeIs;

// What we promise, and what the best of some openings holds; each of them holds a second, on a machine
// with other things to do.
constexpr std::int64_t kPromisedUs = 100'000;
constexpr std::int64_t kSoonUs = 1'000'000;

class MachineSamplesTest : public StartedAgentTest {
 protected:
  struct Life {
    std::int64_t before_open_us = 0;
    std::int64_t opened_us = 0;
    std::int64_t before_close_us = 0;
  };
  Life Live(const std::string& trial, const std::vector<std::string>& words,
            std::map<std::string, std::string> environment, const std::string& idle_exit = "3") {
    const std::string file = scratch_ / absl::StrCat(trial, ".times");
    environment.insert({"TRIAL_TIMES", file});
    // How long it stays between two trials.
    environment["STEPWELL_AGENT_IDLE_EXIT"] = idle_exit;
    EXPECT_EQ(Run(words, environment), "exit 7");
    Life life;
    std::ifstream times(file);
    times >> life.before_open_us >> life.opened_us >> life.before_close_us;
    EXPECT_TRUE(times.good()) << "the trial told no times";
    return life;
  }
  // The rank's own samples lie within its life, or the clocks below could not be compared.
  std::int64_t LastOwnTime(const std::string& trial, const Life& life) {
    const std::vector<std::int64_t> own = TimesOf(trial, "start", "numbered");
    EXPECT_FALSE(own.empty());
    if (own.empty()) return 0;
    EXPECT_GE(own.front(), life.before_open_us);
    EXPECT_LE(own.back(), life.before_close_us);
    return own.back();
  }
  void ExpectWithin(const std::vector<std::int64_t>& times_us, std::int64_t last_own_us,
                    const Life& life) {
    ASSERT_FALSE(times_us.empty()) << AgentLog();
    EXPECT_GE(times_us.front(), life.before_open_us) << "before there was a trial";
    EXPECT_LE(times_us.front(), life.opened_us + kSoonUs);
    EXPECT_GE(times_us.back(), last_own_us) << "none at its Close";
    EXPECT_LE(times_us.back(), life.before_close_us + kSoonUs);
    std::cout << "first " << (times_us.front() - life.opened_us) / 1000 << " ms after Open, last "
              << (times_us.back() - life.before_close_us) / 1000 << " ms after Close, "
              << times_us.size() << " in all\n";
  }
};

// At an interval of an hour no tick falls between by itself: what there is is the first, the first
// with rates 100 ms later, and the last.
TEST_F(MachineSamplesTest, AgentRule10_TheFirstIsTakenAtOpenAndTheLastAtClose) {
  for (const std::string trial : {"with-its-agents-start", "with-an-agent-there"}) {
    SCOPED_TRACE(trial);
    const Life life =
        Live(trial, Trial("close", 200, 2), Environment(trial, {{"STEPWELL_INTERVAL", "3600s"}}));
    EXPECT_TRUE(Eventually([&] { return MachineTimes(trial).size() >= 3; }, absl::Seconds(20)));
    const std::vector<std::int64_t> memory = MachineTimes(trial);
    EXPECT_THAT(memory, SizeIs(3)) << AgentLog();
    ExpectWithin(memory, LastOwnTime(trial, life), life);
    // Rates have none at first.
    const std::vector<std::int64_t> processor = TimesOf(trial, "cpu", "cpu_util_simple");
    ASSERT_THAT(processor, SizeIs(2));
    EXPECT_EQ(processor[0], memory[1]);
    EXPECT_EQ(processor[1], memory[2]);
  }
}

TEST_F(MachineSamplesTest, AgentRule10_TheBestOfSomeOpeningsIsSampledWithin100MsAtBothEnds) {
  const struct {
    const char* name;
    const char* idle_exit;  // seconds
    int openings;
  } rows[] = {// A process is started: what else runs here has its share of that time.
              {"each starts its agent", "0", 10},
              {"all but the first find it there", "3", 5}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    std::int64_t first_us = kSoonUs;
    std::int64_t last_us = kSoonUs;
    for (int i = 0; i < row.openings && std::max(first_us, last_us) > kPromisedUs; ++i) {
      if (*row.idle_exit == '0') {
        EXPECT_TRUE(Eventually([this] { return Agents().empty(); }, absl::Seconds(20)));
      }
      const std::string trial = absl::StrCat("opening-", row.idle_exit, "-", i);
      const Life life = Live(trial, Trial("close", 50, 0.3),
                             Environment(trial, {{"STEPWELL_INTERVAL", "3600s"}}), row.idle_exit);
      EXPECT_TRUE(Eventually([&] { return MachineTimes(trial).size() >= 3; }, absl::Seconds(20)));
      const std::vector<std::int64_t> times_us = MachineTimes(trial);
      ExpectWithin(times_us, LastOwnTime(trial, life), life);
      ASSERT_FALSE(times_us.empty());
      first_us = std::min(first_us, times_us.front() - life.opened_us);
      last_us = std::min(last_us, times_us.back() - life.before_close_us);
    }
    EXPECT_LE(first_us, kPromisedUs) << "after Open";
    EXPECT_LE(last_us, kPromisedUs) << "after Close";
    // The next row has one of its own.
    EXPECT_TRUE(Eventually([this] { return Agents().empty(); }, absl::Seconds(20)));
  }
}

// Its agent comes when it is as good as over, and goes as it would have gone.
TEST_F(MachineSamplesTest, AgentRule10_ARunOfAMomentHasOneAfterItsLastOwnSample) {
  for (const std::string trial : {"with-its-agents-start", "with-an-agent-there"}) {
    SCOPED_TRACE(trial);
    const Life life = Live(trial, Trial("return", 100, 0.05), Environment(trial));
    EXPECT_TRUE(IsStored(trial, 100)) << AgentLog();
    const std::int64_t last_own_us = LastOwnTime(trial, life);
    EXPECT_TRUE(Eventually(
        [&] {
          const std::vector<std::int64_t> times_us = MachineTimes(trial);
          return !times_us.empty() && times_us.back() >= last_own_us;
        },
        absl::Seconds(20)))
        << AgentLog();
    ExpectWithin(MachineTimes(trial), last_own_us, life);
  }
  EXPECT_TRUE(Eventually([this] { return Agents().empty(); }, absl::Seconds(20))) << AgentLog();
  const auto is_writer = [](const auto& entry) { return entry.is_directory(); };
  EXPECT_EQ(std::count_if(std::filesystem::directory_iterator(root() + "/f1"), {}, is_writer), 0)
      << "all of it is stored and gone";
}

}  // namespace
}  // namespace stepwell::testing
