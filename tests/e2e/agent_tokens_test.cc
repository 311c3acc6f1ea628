// Agents that fetch tokens for their trials: through renewals, a master that dies meanwhile, and where none is to be had.
// What a training recorded is stored once, and no token is where others may read it.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "nlohmann/json.hpp"
#include "tests/e2e/token_stand.h"

namespace stepwell::testing {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;
using ::testing::Not;

// As any looks that is written out: nobody knows here which ones an agent fetched.
constexpr char kAnyToken[] = "stepwell_[0-9a-f]{12}_[0-9a-zA-Z_-]{20}";

class AgentTokensTest : public TokenTest {
 protected:
  std::string Made(const std::string& name, const std::string& grant) {
    return Command({"token", "create", name, "--grant", grant}, token_);
  }
  std::string Spool(const std::string& trial) const { return scratch_ / ("spool-" + trial); }
  // A training at 50 steps a second, with an agent of its own.
  void Train(ChildProcess& training, const std::string& trial, const std::string& token, int steps,
             const Words& more = {}, const std::string& writers_token = "") {
    Words words = {BuiltProgram("fault_trainer"),
                   "--trial",
                   trial,
                   "--spool-dir",
                   Spool(trial),
                   "--log",
                   Ledger(trial),
                   "--steps",
                   absl::StrCat(steps),
                   "--rate",
                   "50",
                   "--close-wait-ms",
                   "60000"};
    words.insert(words.end(), more.begin(), more.end());
    training.Start(words,
                   {{"STEPWELL_AGENT", BuiltProgram("stepwell")},
                    {"STEPWELL_AGENT_IDLE_EXIT", "1"},
                    {"STEPWELL_SERVER", master_->grpc_address()},
                    {"STEPWELL_TLS_CA", scratch_ / "ca.pem"},
                    {"STEPWELL_TRACES", scratch_ / ("traces-" + trial)},
                    {"STEPWELL_TRACES_UPLOAD", "1"},
                    {"STEPWELL_TOKEN", token},
                    {"TRAINER_TOKEN", writers_token}},
                   scratch_ / ("training-" + trial));
  }
  std::string AgentLog(const std::string& trial) const {
    std::stringstream text;
    text << std::ifstream(Spool(trial) + "/f1/agent.log").rdbuf();
    return text.str();
  }
  // In whatever the agent and its training wrote, and the master's log.
  void ExpectNoTokenIn(const std::string& trial) {
    for (const std::string& place :
         {Spool(trial), scratch_ / ("training-" + trial), scratch_ / "master.log"}) {
      EXPECT_EQ(Run({"/usr/bin/grep", "-r", "-a", "-o", "-E", kAnyToken, place}), "exit 1")
          << place << ": " << said_;
    }
  }
  // Of the training and its agent, as ps shows them to everybody.
  std::string CommandLines() const {
    std::string all;
    std::error_code error;
    for (const auto& process : fs::directory_iterator("/proc", error)) {
      // Of an agent with a token root alone reads more than its command line.
      std::stringstream words;
      words << std::ifstream(process.path() / "cmdline").rdbuf();
      if (!absl::StrContains(words.str(), scratch_.path())) continue;
      absl::StrAppend(&all, words.str(), "\n");
    }
    std::replace(all.begin(), all.end(), '\0', ' ');
    return all;
  }
  int TokensFetched(const std::string& trial) const {
    return master_->CountInLog("grants=ingest:default/" + trial);
  }
  static constexpr absl::Duration kPatience = absl::Seconds(90);
};

// Those that are fetched live for two seconds here. One that lapses before it is renewed, on a busy machine, costs nothing where
// the agent's own is good.
class BriefTokensTest : public AgentTokensTest {
 protected:
  Words Flags() const override {
    Words flags = TokenTest::Flags();
    flags.insert(flags.end(), {"--fetched-token-max", lives()});
    return flags;
  }
  virtual std::string lives() const { return "2s"; }
  std::size_t TracesOf(const std::string& trial) {
    EXPECT_EQ(Run({BuiltProgram("stepwell"), "trace", "list", trial, "--json", "--server",
                   master_->grpc_address(), "--tls-ca", scratch_ / "ca.pem"},
                  {{"STEPWELL_TOKEN", token_}}),
              "exit 0")
        << said_;
    const auto list = nlohmann::json::parse(said_, nullptr, false);
    return list.contains("traces") ? list["traces"].size() : 0;
  }
};

TEST_F(BriefTokensTest, AgentsGoOnThroughRenewalsAndLoseNothing) {
  const std::string wide = Made("ci", "write:default");
  ChildProcess training;
  Train(training, "of-wide", wide, 600);
  ASSERT_TRUE(Eventually([&] { return TokensFetched("of-wide") >= 3; }, kPatience));
  const std::string shown = CommandLines();
  EXPECT_THAT(shown, HasSubstr("fault_trainer"));
  EXPECT_THAT(shown, ::testing::ContainsRegex("stepwell agent .*of-wide"));
  EXPECT_THAT(shown, Not(::testing::ContainsRegex(kAnyToken)));
  EXPECT_EQ(training.Wait(kPatience), "exit 0");
  ExpectWhole("of-wide", 600);
  EXPECT_GE(TokensFetched("of-wide"), 6) << master_->LogTail();
  EXPECT_GE(master_->CountInLog("made_by=" + wide.substr(9, 12)), 6);
  EXPECT_EQ(master_->CountInLog(wide), 0);
  ExpectNoTokenIn("of-wide");
  EXPECT_THAT(AgentLog("of-wide"), Not(HasSubstr("token_not_fetched")));
}

// As a launcher hands them to a training: the agent's own ends after ten seconds, and there is no other.
class LaunchersTokensTest : public BriefTokensTest {
 protected:
  std::string lives() const override { return "10s"; }
};

// Uploads show the newest, too.
TEST_F(LaunchersTokensTest, AnAgentWhoseOwnTokenWasFetchedRenewsThatToo) {
  ChildProcess training;
  Train(training, "of-brief", Command({"token", "fetch", "--trial", "default/of-brief"}, token_),
        900);
  EXPECT_EQ(training.Wait(kPatience), "exit 0");
  ExpectWhole("of-brief", 900);
  EXPECT_GE(TokensFetched("of-brief"), 4) << master_->LogTail();
  EXPECT_GE(master_->CountInLog("made_by=admin:"), 4);
  EXPECT_TRUE(Eventually([&] { return TracesOf("of-brief") > 0; }, kPatience))
      << AgentLog("of-brief");
  ExpectNoTokenIn("of-brief");
}

// As after an upgrade with another file, or where a clock jumps: the agent has no other token.
TEST_F(LaunchersTokensTest, ARefusalThatPassesCostsAnAgentWhoseOwnTokenWasFetchedNothing) {
  ChildProcess training;
  Train(training, "of-passing",
        Command({"token", "fetch", "--trial", "default/of-passing"}, token_), 900);
  ASSERT_TRUE(Eventually([&] { return TokensFetched("of-passing") >= 3; }, kPatience));
  // Whenever it is renewed, after four to six seconds, that is refused.
  absl::SleepFor(absl::Milliseconds(2800));
  fs::rename(scratch_ / "token", scratch_ / "token-away");
  absl::SleepFor(absl::Milliseconds(3500));
  fs::rename(scratch_ / "token-away", scratch_ / "token");
  const int before = TokensFetched("of-passing");
  EXPECT_EQ(training.Wait(kPatience), "exit 0");
  ExpectWhole("of-passing", 900);
  EXPECT_GT(TokensFetched("of-passing"), before);
  const std::string log = AgentLog("of-passing");
  EXPECT_THAT(log, HasSubstr("token_not_fetched")) << "it was refused indeed";
  EXPECT_THAT(log, HasSubstr("the one of before is shown"));
  ExpectNoTokenIn("of-passing");
}

// It dies as a token is to be renewed, and is away for longer than that one lives: the agent's own is shown again.
TEST_F(BriefTokensTest, AMasterThatDiesWhileTokensAreRenewedCostsNothing) {
  const std::string wide = Made("ci", "write:default");
  ChildProcess training;
  Train(training, "of-dying", wide, 900);
  for (int life = 1; life <= 2; ++life) {
    const int before = TokensFetched("of-dying");
    ASSERT_TRUE(Eventually([&] { return TokensFetched("of-dying") >= before + 2; }, kPatience));
    master_->Kill();
    absl::SleepFor(absl::Seconds(3));
    ASSERT_TRUE(master_->StartAndWait()) << master_->LogTail();
  }
  EXPECT_EQ(training.Wait(kPatience), "exit 0");
  ExpectWhole("of-dying", 900);
  ExpectNoTokenIn("of-dying");
}

TEST_F(AgentTokensTest, AWriterThatBringsATokenShowsThatAndNoOther) {
  const std::string agents = Made("agents", "write:default");
  const std::string its = Made("its", "ingest:default/brings");
  ChildProcess training;
  Train(training, "brings", agents, 100, {}, its);
  EXPECT_EQ(training.Wait(kPatience), "exit 0");
  ExpectWhole("brings", 100);
  EXPECT_EQ(TokensFetched("brings"), 1) << "its own, as it was created";
  EXPECT_EQ(master_->CountInLog("token_fetched"), 0) << master_->LogTail();
}

// What may not be ingested is not to be fetched for either: the writer's refusal is told, and why no token was fetched, once.
TEST_F(AgentTokensTest, AnAgentWhoseTokenMayNotFetchShowsItsOwnAndSaysWhyOnce) {
  const std::string readers = Made("readers", "read:default");
  ChildProcess training;
  Train(training, "denied", readers, 50, {"--close-wait-ms", "3000"});
  EXPECT_EQ(training.Wait(kPatience), "exit 3");
  const std::string log = AgentLog("denied");
  EXPECT_THAT(log, HasSubstr("GRANT_MISSING"));
  EXPECT_THAT(log, HasSubstr("token_not_fetched"));
  EXPECT_EQ(log.find("token_not_fetched"), log.rfind("token_not_fetched")) << log;
  ExpectNoTokenIn("denied");
}

// It has no other, and the master's file of it goes as the training begins: what is recorded meanwhile waits.
TEST_F(AgentTokensTest, WhatIsRecordedWhileTheOnlyTokenIsRefusedIsStoredOnceItIsTakenAgain) {
  constexpr absl::Duration kRefused = absl::Seconds(12);
  fs::rename(scratch_ / "token", scratch_ / "token-away");
  ChildProcess training;
  Train(training, "waits", token_, 100'000, {"--close-wait-ms", "90000"});
  const auto told = [&](const std::string& event) {
    const std::string log = AgentLog("waits");
    int lines = 0;
    for (std::size_t at = 0; (at = log.find(event, at)) != std::string::npos; ++at) ++lines;
    return lines;
  };
  // The master looks at its file once a second: the stream that was there is ended, and others are refused.
  ASSERT_TRUE(Eventually([&] { return told("code=16") > 0; }, kPatience)) << AgentLog("waits");
  const absl::Time until = absl::Now() + kRefused;
  ASSERT_TRUE(Eventually([&] { return absl::Now() >= until; }, kPatience));
  EXPECT_EQ(told("code=16"), 1) << AgentLog("waits");
  EXPECT_LE(told("token_not_fetched"), 1) << AgentLog("waits");
  fs::rename(scratch_ / "token-away", scratch_ / "token");
  training.Signal(SIGTERM);
  EXPECT_EQ(training.Wait(absl::Seconds(100)), "exit 0") << AgentLog("waits");
  // A line a minute, and it was a minute at most until the stream was tried again.
  EXPECT_LE(told("code=16"), 2) << AgentLog("waits");
  ExpectWhole("waits", 12 * 50);
  ExpectNoTokenIn("waits");
}

// A master that asks for none, as it was before.
class NoTokensTest : public AgentTokensTest {
 protected:
  Words Flags() const override {
    return {"--tls-cert",   scratch_ / "server.pem",
            "--tls-key",    scratch_ / "server.key",
            "--token-file", "none"};
  }
};

TEST_F(NoTokensTest, AgentsGoOnWithoutAWord) {
  ChildProcess training;
  Train(training, "unasked", "stepwell_000000000000_not_one_of_this_master", 100);
  EXPECT_EQ(training.Wait(kPatience), "exit 0");
  ExpectWhole("unasked", 100);
  EXPECT_THAT(AgentLog("unasked"), Not(HasSubstr("token")));
}

}  // namespace
}  // namespace stepwell::testing
