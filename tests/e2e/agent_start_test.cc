// The agent that a trial brings with it: real trials, the real program, a real master.
#include <signal.h>

#include <algorithm>
#include <filesystem>

#include "absl/time/clock.h"
#include "tests/e2e/started_agent.h"

namespace stepwell::testing {
namespace {

namespace fs = std::filesystem;

TEST_F(StartedAgentTest, AgentRule10_AShortRunIsStoredWholeWhenItEnds) {
  const absl::Time begin = absl::Now();
  EXPECT_EQ(Run(Trial("return", 1000, 0.05), Environment("short")), "exit 7");
  const absl::Duration took = absl::Now() - begin;
  // No patience: it was stored when the trial had ended.
  EXPECT_TRUE(IsStored("short", 1000)) << AgentLog();
  EXPECT_LE(took, absl::Seconds(5));
  RecordProperty("took_ms", static_cast<int>(absl::ToInt64Milliseconds(took)));
  std::printf("a run of 50 ms with its agent's start, the master's ack and the exit: %lld ms\n",
              static_cast<long long>(absl::ToInt64Milliseconds(took)));

  // The second finds the agent there.
  EXPECT_EQ(Run(Trial("close", 10), Environment("next")), "exit 7");
  EXPECT_TRUE(IsStored("next", 10)) << AgentLog();
}

TEST_F(StartedAgentTest, AgentRule09_AnIdleAgentLeavesNoProcess) {
  EXPECT_EQ(Run(Trial("close", 10), Environment("idle")), "exit 7");
  EXPECT_EQ(Agents().size(), 1u);
  EXPECT_TRUE(Eventually([this] { return Agents().empty(); }, absl::Seconds(20))) << AgentLog();
  // One that starts again as soon as it is needed.
  EXPECT_EQ(Run(Trial("close", 20), Environment("again")), "exit 7");
  EXPECT_TRUE(IsStored("again", 20));
}

TEST_F(StartedAgentTest, AgentRule08_EightRanksThatStartAtOnceShareOneAgent) {
  constexpr int kRanks = 8;
  std::vector<ChildProcess> ranks(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks[rank].Start(Trial("close", 500, 2),
                      Environment("ranks", {{"RANK", absl::StrCat(rank)},
                                            {"WORLD_SIZE", absl::StrCat(kRanks)},
                                            {"STEPWELL_ATTEMPT_KEY", "one"},
                                            {"STEPWELL_AGENT_IDLE_EXIT", "5"}}),
                      scratch_ / absl::StrCat("rank-", rank));
  }
  for (ChildProcess& rank : ranks) EXPECT_EQ(rank.Wait(absl::Seconds(60)), "exit 7");
  EXPECT_EQ(Agents().size(), 1u) << "of all that were started one is left";
  EXPECT_TRUE(IsStored("ranks", 500, kRanks)) << AgentLog();
}

TEST_F(StartedAgentTest, AgentRule08_APipelineEndsWithTheTrial) {
  const std::string log = scratch_ / "piped";
  ChildProcess shell;
  shell.Start({"/bin/sh", "-c", BuiltProgram("small_trial") + " close 100 2>&1 | cat"},
              Environment("piped", {{"STEPWELL_AGENT_IDLE_EXIT", "6"}}), log);
  EXPECT_EQ(shell.Wait(absl::Seconds(30)), "exit 0");
  EXPECT_EQ(Agents().size(), 1u) << "it lives on, and holds nobody";
  EXPECT_TRUE(IsStored("piped", 100)) << ReadText(log) << AgentLog();
}

TEST_F(StartedAgentTest, AgentRule08_ADeadAgentIsReplacedWithinTwoSecondsAndNothingIsLost) {
  constexpr int kKills = 3;
  ChildProcess trial;
  trial.Start(Trial("close", 20'000, 12), Environment("killed"), scratch_ / "trial");
  pid_t killed = 0;
  std::size_t stored_before = 0;
  absl::Time since;
  absl::Duration soonest = absl::InfiniteDuration();
  for (int i = 0; i < kKills; ++i) {
    ASSERT_TRUE(
        Eventually([&] { return Serving() != 0 && Serving() != killed; }, absl::Seconds(10)))
        << AgentLog();
    if (i > 0) {
      const absl::Duration took = absl::Now() - since;
      soonest = std::min(soonest, took);
      std::printf("replaced after %lld ms\n",
                  static_cast<long long>(absl::ToInt64Milliseconds(took)));
    }
    // It has taken up the trial's samples.
    ASSERT_TRUE(
        Eventually([&] { return Stored("killed").size() > stored_before; }, absl::Seconds(10)))
        << AgentLog();
    ASSERT_TRUE(trial.running());
    killed = Serving();
    stored_before = Stored("killed").size();
    since = absl::Now();
    kill(killed, SIGKILL);
  }
  EXPECT_LE(soonest, absl::Seconds(2)) << "one of them may have met a busy machine";
  EXPECT_EQ(trial.Wait(absl::Seconds(60)), "exit 7") << ReadText(scratch_ / "trial");
  EXPECT_TRUE(IsStored("killed", 20'000)) << Stored("killed").size() << AgentLog();
}

TEST_F(StartedAgentTest, AgentRule08_ATrialMeetsNoStrangeChild) {
  EXPECT_EQ(Run(Trial("children", 100, 2), Environment("parent")), "exit 7");
  EXPECT_TRUE(IsStored("parent", 100));
}

TEST_F(StartedAgentTest, AgentRule11_EndsOfEachKindLoseNothing) {
  // It lives for some milliseconds.
  EXPECT_EQ(Run(Trial("_exit", 5000), Environment("left")), "exit 7");
  EXPECT_TRUE(BecomesStored("left", 5000)) << Stored("left").size() << "\n" << AgentLog();
  EXPECT_EQ(Run(Trial("exec", 300), Environment("other")), "exit 7");
  EXPECT_TRUE(BecomesStored("other", 300, 2)) << Stored("other").size() << AgentLog();
  EXPECT_EQ(Run(Trial("daemon", 400), Environment("daemon")), "exit 7");
  EXPECT_TRUE(BecomesStored("daemon", 400, 2)) << Stored("daemon").size() << AgentLog();
}

TEST_F(StartedAgentTest, AgentRule09_OfflineNothingIsSentUntilItIsUploaded) {
  const absl::Time begin = absl::Now();
  EXPECT_EQ(Run(Trial("return", 200), Environment("offline", {{"STEPWELL_OFFLINE", "1"},
                                                              {"STEPWELL_AGENT_IDLE_EXIT", "60"}})),
            "exit 7");
  EXPECT_LE(absl::Now() - begin, absl::Seconds(4)) << "there is no ack to wait for";
  EXPECT_TRUE(Stored("offline").empty());
  // Its agent still serves the spool; it gives it up for the upload, which waits.
  ChildProcess upload;
  const std::string log = scratch_ / "upload";
  upload.Start({BuiltProgram("stepwell"), "upload", root(), "--server", master_->grpc_address()},
               {}, log);
  EXPECT_EQ(upload.Wait(absl::Seconds(60)), "exit 0") << ReadText(log);
  EXPECT_TRUE(IsStored("offline", 200)) << ReadText(log);
  EXPECT_THAT(AgentLog(), ::testing::HasSubstr("all_acked=false"));
}

TEST_F(StartedAgentTest, AgentRule07_WhereASystemAgentServesTheTrialStartsNone) {
  if (geteuid() != 0) GTEST_SKIP() << "a system agent is root's";
  const std::string system = scratch_ / "run";
  ChildProcess agent;
  agent.Start({BuiltProgram("stepwell"), "agent", "--system", "--server", master_->grpc_address()},
              {{"STEPWELL_SYSTEM_ROOT", system}}, scratch_ / "system-agent");
  ASSERT_TRUE(Eventually([&] { return HolderOf(system) != 0; }, absl::Seconds(20)))
      << ReadText(scratch_ / "system-agent");
  EXPECT_EQ(Run(Trial("close", 300), Environment("served", {{"STEPWELL_SYSTEM_ROOT", system}})),
            "exit 7");
  EXPECT_TRUE(IsStored("served", 300)) << ReadText(scratch_ / "system-agent");
  EXPECT_FALSE(fs::exists(root())) << "it lies below the system's";
  EXPECT_TRUE(fs::exists(system + "/u0/f1"));
  agent.Signal(SIGTERM);
  EXPECT_EQ(agent.Wait(absl::Seconds(20)), "exit 0");
  // Without it the trial helps itself.
  EXPECT_EQ(Run(Trial("close", 200), Environment("own", {{"STEPWELL_SYSTEM_ROOT", system}})),
            "exit 7");
  EXPECT_TRUE(IsStored("own", 200)) << AgentLog();
}

TEST_F(StartedAgentTest, AgentRule17_AReadOnlyRootAndNoHomeAreEnough) {
  const std::string script =
      absl::StrCat("mount -t tmpfs -o size=64m,mode=1777 tmpfs ", temporary(),
                   " && mount -o remount,ro,bind / || exit 77\n", "unset HOME\nexec ",
                   BuiltProgram("small_trial"), " close 1000 1\n");
  ChildProcess trial;
  trial.Start({"/usr/bin/unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", script},
              Environment("bare"), scratch_ / "bare");
  const std::string ending = trial.Wait(absl::Seconds(60));
  if (ending == "exit 77" || ending == "exit 1") GTEST_SKIP() << "no mounts of one's own here";
  EXPECT_EQ(ending, "exit 7") << ReadText(scratch_ / "bare");
  EXPECT_TRUE(IsStored("bare", 1000));
}

}  // namespace
}  // namespace stepwell::testing
