// `stepwell run` and the token of its trial: what the training has in place of a wide one, that its agent renews it, also one
// that was there before for another trial, and that a training starts whatever becomes of it.
#include <gmock/gmock.h>
#include <signal.h>

#include "absl/strings/match.h"
#include "tests/e2e/token_stand.h"
#include "tests/support/loopback.h"

namespace stepwell::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using Variables = std::map<std::string, std::string>;

class RunTokenTest : public TokenTest {
 protected:
  std::string Made(const std::string& grant) {
    return Command({"token", "create", "made", "--grant", grant}, token_);
  }
  std::string CaFile() const { return scratch_ / "ca.pem"; }
  // What a program that `stepwell run --trial-token WORDS` starts has as its tokens, behind what was said to people.
  std::string Tokens(Words words, const std::string& token, const Variables& variables = {}) {
    words.insert(words.begin(), "--trial-token");
    return TokensAsItIs(std::move(words), token, variables);
  }
  std::string TokensAsItIs(Words words, const std::string& token, Variables variables = {}) {
    words.insert(words.begin(), {BuiltProgram("stepwell"), "run"});
    words.insert(words.end(), {"--", "/bin/sh", "-c",
                               "echo \"has $STEPWELL_TOKEN ${STEPWELL_TRIAL_TOKEN-none}\""});
    variables.insert({{"STEPWELL_TOKEN", token},
                      {"STEPWELL_TLS_CA", CaFile()},
                      {"STEPWELL_SERVER", master_->grpc_address()}});
    EXPECT_EQ(Run(words, variables), "exit 0") << said_;
    return said_;
  }
  static std::string Has(const std::string& token) {
    return absl::StrCat("has ", token, " none\n");
  }
};

TEST_F(RunTokenTest, ATrainingHasATokenOfItsTrialAloneInPlaceOfAWideOne) {
  const std::string wide = Made("write:default");
  Command({"trials"}, wide);
  const std::string said = Tokens({"--trial", "narrow"}, wide);
  ASSERT_TRUE(absl::StartsWith(said, "has stepwell_")) << said;
  const std::string text = said.substr(4, kTextBytes);
  EXPECT_EQ(said, absl::StrCat("has ", text, " ", text, " default/narrow\n")) << "and not a word";
  EXPECT_NE(text, wide);
  Command({"token", "list", "--fetched"}, token_);
  EXPECT_THAT(said_, HasSubstr("ingest:default/narrow"));
  const Words other = {
      BuiltProgram("stepwell"), "token",    "fetch", "--trial", "default/another", "--server",
      master_->grpc_address(),  "--tls-ca", CaFile()};
  EXPECT_EQ(Run(other, {{"STEPWELL_TOKEN", text}}), "exit 1");
  EXPECT_THAT(said_, HasSubstr("no grant ingest:default/another"));
  EXPECT_THAT(Tokens({"--trial", "run", "--project", "speech"}, Made("write:speech")),
              Not(HasSubstr("none")));
  // Who does not ask for one keeps what is there.
  EXPECT_EQ(TokensAsItIs({"--trial", "narrow"}, wide), Has(wide));
  // One that may do no more is the trial's already.
  for (const std::string& own : {text, Made("ingest:default/narrow")}) {
    EXPECT_EQ(Tokens({"--trial", "narrow"}, own),
              absl::StrCat("has ", own, " ", own, " default/narrow\n"));
  }
  EXPECT_EQ(master_->CountInLog("token_fetched"), 2) << master_->LogTail();
}

TEST_F(RunTokenTest, WhatAsksLeavesNothingInTheTraining) {
  const std::string wide = Made("write:default");
  // As the program itself has it.
  const auto state = [&](const std::string& option) {
    std::string all;
    for (const char* look :
         {"exec ls /proc/self/fd", "exec cat /proc/self/task/*/children",
          "exec grep -E 'Sig|Shd|Threads|Seccomp:|NoNewPrivs' /proc/self/status"}) {
      EXPECT_EQ(Run({BuiltProgram("stepwell"), "run", option, "--trial", "t", "--", "/bin/sh", "-c",
                     look},
                    {{"STEPWELL_TOKEN", wide},
                     {"STEPWELL_TLS_CA", CaFile()},
                     {"STEPWELL_SERVER", master_->grpc_address()}}),
                "exit 0");
      absl::StrAppend(&all, said_);
    }
    return all;
  };
  const std::string kept = state("--project=default");
  EXPECT_THAT(kept, HasSubstr("Threads:\t1\n"));
  EXPECT_EQ(state("--trial-token"), kept);
  EXPECT_EQ(master_->CountInLog("token_fetched"), 3);
}

TEST_F(RunTokenTest, WhereThereIsNoneToBeHadATrainingStartsSoonAndIsToldWhy) {
  const SilentListener silent;
  // A release before there were such tokens.
  grpc::ServerBuilder builder;
  int older_port = 0;
  const TlsPair own = *ca_.Sign({TlsSide::kServer, "s", {"127.0.0.1"}, now_, End()});
  grpc::SslServerCredentialsOptions tls;
  tls.pem_key_cert_pairs = {{own.key_pem, own.cert_pem}};
  builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(tls), &older_port);
  v1::IngestService::Service older_service;
  builder.RegisterService(&older_service);
  const auto older = builder.BuildAndStart();
  const std::string reader = Made("read:default");
  const std::string wide = Made("write:default");
  const std::string unknown = wide.substr(0, wide.size() - 1) + (wide.back() == 'a' ? 'b' : 'a');
  const struct {
    const char* name;
    Words words;
    std::string token;
    Variables variables;
    std::string says;  // empty: not a word
  } rows[] = {
      {"no grant", {"--trial", "t"}, reader, {}, "no grant ingest:default/t"},
      {"unknown token", {"--trial", "t"}, unknown, {}, "knows no such token"},
      {"no trial", {}, wide, {}, "without --trial nobody knows yet whose"},
      {"nobody there", {"--trial", "t", "--server", "127.0.0.1:1"}, wide, {}, "refused"},
      {"silent",
       {"--trial", "t", "--server", absl::StrCat("127.0.0.1:", silent.port())},
       wide,
       {},
       "nobody answered at 127.0.0.1:"},
      {"older",
       {"--trial", "t", "--server", absl::StrCat("127.0.0.1:", older_port)},
       wide,
       {},
       "STEPWELL_TOKEN goes to the program as it is"},
      {"no CA", {"--trial", "t"}, wide, {{"STEPWELL_TLS_CA", "/no/such.pem"}}, "/no/such.pem"},
      {"quiet", {"--trial", "t"}, reader, {{"STEPWELL_QUIET", "1"}}, ""},
      {"in plain", {"--trial", "t"}, wide, {{"STEPWELL_TLS_CA", ""}}, ""},
      {"offline", {"--trial", "t", "--offline"}, wide, {}, ""},
      {"disabled", {"--trial", "t", "--disabled"}, wide, {}, ""},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const absl::Time begin = absl::Now();
    const std::string said = Tokens(row.words, row.token, row.variables);
    EXPECT_LT(absl::Now() - begin, absl::Seconds(10));
    EXPECT_TRUE(absl::EndsWith(said, Has(row.token))) << said;
    if (row.says.empty()) {
      EXPECT_EQ(said, Has(row.token));
    } else {
      EXPECT_THAT(said, HasSubstr(row.says));
      EXPECT_TRUE(absl::StartsWith(said, "stepwell run: ")) << said;
    }
    EXPECT_EQ(said.find(row.token), said.rfind(row.token)) << "once, by the program itself";
  }
  older->Shutdown();
}

// Tokens that are fetched live for two seconds here.
class RunTrainingsTokenTest : public RunTokenTest {
 protected:
  Words Flags() const override {
    Words flags = TokenTest::Flags();
    flags.insert(flags.end(), {"--fetched-token-max", "2s"});
    return flags;
  }
  void Train(ChildProcess& training, const std::string& trial, const std::string& wide, int steps) {
    training.Start({BuiltProgram("stepwell"), "run", "--trial-token", "--trial", trial, "--",
                    BuiltProgram("fault_trainer"), "--trial", trial, "--spool-dir",
                    scratch_ / "spool", "--log", Ledger(trial), "--steps", absl::StrCat(steps),
                    "--rate", "50", "--close-wait-ms", "60000"},
                   {{"STEPWELL_AGENT", BuiltProgram("stepwell")},
                    {"STEPWELL_AGENT_IDLE_EXIT", "20"},
                    {"STEPWELL_SERVER", master_->grpc_address()},
                    {"STEPWELL_TLS_CA", CaFile()},
                    {"STEPWELL_TOKEN", wide}},
                   scratch_ / ("training-" + trial));
  }
  int TokensFetched(const std::string& trial) const {
    return master_->CountInLog(absl::StrCat("grants=ingest:default/", trial));
  }
  int AgentsStarted() {
    Run({"/usr/bin/grep", "-c", "agent_started", scratch_ / "spool/f1/agent.log"});
    return std::atoi(said_.c_str());
  }
};

TEST_F(RunTrainingsTokenTest, WhatIsLeftWhenItIsOverIsUploadedWithTheUploadsOwn) {
  const std::string wide = Made("write:default");
  ChildProcess training;
  training.Start({BuiltProgram("stepwell"),
                  "run",
                  "--trial-token",
                  "--trial",
                  "left",
                  "--agent",
                  "off",
                  "--",
                  BuiltProgram("fault_trainer"),
                  "--trial",
                  "left",
                  "--spool-dir",
                  scratch_ / "spool",
                  "--log",
                  Ledger("left"),
                  "--steps",
                  "50",
                  "--rate",
                  "50",
                  "--close-wait-ms",
                  "0"},
                 {{"STEPWELL_SERVER", master_->grpc_address()},
                  {"STEPWELL_TLS_CA", CaFile()},
                  {"STEPWELL_TOKEN", wide}},
                 scratch_ / "training-left");
  EXPECT_EQ(training.Wait(absl::Seconds(60)), "exit 3") << "it waits in its spool";
  const auto is_over = [&] {
    Command({"token", "list", "--fetched"}, token_);
    return said_.find("ingest:default/left") == std::string::npos ||
           said_.find("expired") != std::string::npos;
  };
  ASSERT_TRUE(Eventually(is_over, absl::Seconds(30))) << said_;
  Command({"upload", scratch_ / "spool"}, wide);
  ExpectWhole("left", 50);
}

TEST_F(RunTrainingsTokenTest, TheirAgentRenewsThemAlsoOneOfAnotherTrial) {
  const std::string wide = Made("write:default");
  ChildProcess first;
  ChildProcess second;
  Train(first, "first", wide, 600);
  ASSERT_TRUE(Eventually([&] { return AgentsStarted() == 1; }, absl::Seconds(30)));
  Train(second, "second", wide, 400);
  EXPECT_EQ(second.Wait(absl::Seconds(90)), "exit 0");
  EXPECT_EQ(first.Wait(absl::Seconds(90)), "exit 0");
  // The agent is there still, and what it was started with is over.
  ChildProcess third;
  Train(third, "third", wide, 200);
  EXPECT_EQ(third.Wait(absl::Seconds(90)), "exit 0");
  EXPECT_EQ(AgentsStarted(), 1);
  ExpectWhole("first", 600);
  ExpectWhole("second", 400);
  ExpectWhole("third", 200);
  for (const char* trial : {"first", "second", "third"}) {
    EXPECT_GE(master_->CountInLog(absl::StrCat("grants=ingest:default/", trial)), 3) << trial;
  }
  EXPECT_EQ(
      Run({"/usr/bin/grep", "-r", "-a", "-F", wide, scratch_ / "spool", scratch_ / "master.log"}),
      "exit 1")
      << said_;
}

// Each training has a token that somebody made for its trial; the agent was started with the first one's.
TEST_F(RunTrainingsTokenTest, TheAgentThatIsThereTakesWhatAnAdminMadeForAnotherTrial) {
  ChildProcess first;
  ChildProcess second;
  Train(first, "first", Made("ingest:default/first"), 400);
  ASSERT_TRUE(Eventually([&] { return AgentsStarted() == 1; }, absl::Seconds(30)));
  Train(second, "second", Made("ingest:default/second"), 200);
  EXPECT_EQ(second.Wait(absl::Seconds(90)), "exit 0");
  EXPECT_EQ(first.Wait(absl::Seconds(90)), "exit 0");
  EXPECT_EQ(AgentsStarted(), 1);
  ExpectWhole("first", 400);
  ExpectWhole("second", 200);
}

// Long enough for an agent to begin anew while one lives.
class RestartedAgentTokenTest : public RunTrainingsTokenTest {
 protected:
  Words Flags() const override {
    Words flags = TokenTest::Flags();
    flags.insert(flags.end(), {"--fetched-token-max", "10s"});
    return flags;
  }
  pid_t AgentsPid() {
    Run({"/usr/bin/pgrep", "-o", "-f", absl::StrCat("stepwell agent .*", scratch_ / "spool")});
    return std::atoi(said_.c_str());
  }
};

// It has what the training has, which is over, and what the agent before it kept.
TEST_F(RestartedAgentTokenTest, OneThatBeginsAfterTheFirstTokensEndGoesOnWithTheNewest) {
  const std::string wide = Made("write:default");
  ChildProcess training;
  Train(training, "long", wide, 1500);
  ASSERT_TRUE(Eventually([&] { return TokensFetched("long") >= 1; }, absl::Seconds(30)));
  absl::SleepFor(absl::Seconds(11));
  const int fetched = TokensFetched("long");
  ASSERT_TRUE(Eventually([&] { return TokensFetched("long") > fetched; }, absl::Seconds(30)));
  absl::SleepFor(absl::Milliseconds(500));
  const pid_t before = AgentsPid();
  ASSERT_GT(before, 0);
  ASSERT_EQ(kill(before, SIGKILL), 0);
  EXPECT_EQ(training.Wait(absl::Seconds(120)), "exit 0");
  EXPECT_EQ(AgentsStarted(), 2);
  EXPECT_NE(AgentsPid(), before);
  ExpectWhole("long", 1500);
  // In the file of its user alone; what may do more is in none.
  EXPECT_EQ(Run({"/usr/bin/find", scratch_ / "spool", "-name", "tokens.json", "-perm", "600"}),
            "exit 0");
  EXPECT_THAT(said_, HasSubstr("/f1/tokens.json"));
  EXPECT_EQ(
      Run({"/usr/bin/grep", "-r", "-a", "-F", wide, scratch_ / "spool", scratch_ / "master.log"}),
      "exit 1")
      << said_;
}

}  // namespace
}  // namespace stepwell::testing
