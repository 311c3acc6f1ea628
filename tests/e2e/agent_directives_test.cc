// What the master asks for, followed by real agents and a real trial.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "stepwell/v1/query.grpc.pb.h"
#include "tests/e2e/spine.h"
#include "tests/support/child_process.h"

namespace stepwell::testing {
namespace {

// Two seconds is what we promise; the rest is for a machine with other things to do.
constexpr std::int64_t kSecondUs = 1'000'000;
constexpr std::int64_t kFollowedUs = 5 * kSecondUs;

class AgentDirectivesTest : public SpineTest {
 protected:
  static constexpr char kTrial[] = "directed";

  ChildProcess StartAgent(const std::string& name) {
    ChildProcess agent;
    agent.Start({BuiltProgram("stepwell"), "agent", "--server", master_->grpc_address(),
                 "--spool-dir", scratch_ / name, "--trial", kTrial, "--interval", "50ms"},
                {{"STEPWELL_AGENT_ID", name}}, scratch_ / absl::StrCat(name, ".log"));
    return agent;
  }
  ChildProcess StartTraining(const std::string& spool) {
    std::filesystem::create_directory(scratch_ / "text");
    std::ofstream text(scratch_ / "text/corpus.txt");
    for (int i = 0; i < 2000; ++i) text << "the " << i << "th line of a text to learn\n";
    text.close();
    ChildProcess training;
    training.Start(
        {BuiltProgram("stepwell-demo"), "--seconds", "120", "--trial", kTrial, "--data",
         scratch_ / "text", "--quiet"},
        {{"STEPWELL_SERVER", master_->grpc_address()}, {"STEPWELL_SPOOL_DIR", scratch_ / spool}},
        scratch_ / "training.log");
    return training;
  }
  // `stepwell admin profiling` with these words: how it ended.
  std::string AdminProfiling(const std::vector<std::string>& more) {
    std::vector<std::string> words = {BuiltProgram("stepwell"), "admin", "profiling", kTrial};
    words.insert(words.end(), more.begin(), more.end());
    ChildProcess admin;
    admin.Start(words, {{"STEPWELL_SERVER", master_->grpc_address()}}, scratch_ / "admin.log");
    return admin.Wait(absl::Seconds(30));
  }

  // When the newest sample of each series with that name was taken, by the agent's label.
  std::map<std::string, std::int64_t> NewestOf(const std::string& name) {
    v1::LatestValuesRequest request;
    request.mutable_trial()->set_external_id(kTrial);
    request.mutable_selector()->set_name(name);
    v1::LatestValuesResponse response;
    grpc::ClientContext context;
    v1::QueryService::NewStub(client_->channel())->LatestValues(&context, request, &response);
    std::map<std::string, std::int64_t> newest;
    for (const auto& value : response.values()) {
      const auto& labels = value.series().key().labels();
      const auto agent = labels.find("agent");
      std::int64_t& time_us = newest[agent == labels.end() ? "" : agent->second];
      time_us = std::max(time_us, value.time_us());
    }
    return newest;
  }
  std::int64_t NewestTime(const std::string& name) {
    std::int64_t newest_us = 0;
    for (const auto& [agent, time_us] : NewestOf(name)) newest_us = std::max(newest_us, time_us);
    return newest_us;
  }
  bool SampledAfter(const std::string& name, std::int64_t time_us) {
    return Eventually([&] { return NewestTime(name) > time_us; }, absl::Seconds(30));
  }
  bool SampledBy(const std::string& agent, std::int64_t time_us) {
    return Eventually([&] { return NewestOf("memory_free")[agent] > time_us; }, absl::Seconds(30));
  }
  // Until nothing of that name has come for a second; when its newest sample was taken.
  std::int64_t LastOf(const std::string& name) {
    std::int64_t newest_us = NewestTime(name);
    absl::Time changed = absl::Now();
    const bool ended = Eventually(
        [&] {
          const std::int64_t now_us = NewestTime(name);
          if (now_us != newest_us) changed = absl::Now();
          newest_us = now_us;
          return absl::Now() - changed > absl::Seconds(1);
        },
        absl::Seconds(30));
    EXPECT_TRUE(ended) << name << " goes on";
    return newest_us;
  }
  std::int64_t StoredOf(const std::string& agent) {
    EXPECT_TRUE(client_->Flush().ok());
    auto connection = PgConnection::Open({.url = master_->database_url()});
    EXPECT_TRUE(connection.ok()) << connection.status();
    const auto rows = (*connection)
                          ->Exec(
                              "select count(*) from stepwell.samples((select trial_id from "
                              "stepwell.trials where external_id = $1), 'memory', 'memory_free') "
                              "where labels->>'agent' = $2",
                              {kTrial, agent});
    EXPECT_TRUE(rows.ok()) << rows.status();
    return rows.ok() ? rows->Int64(0, 0) : -1;
  }
};

TEST_F(AgentDirectivesTest, AgentRule12_ProfilingOffStopsAllSamplesOfATrialAndOnResumesThem) {
  StartMaster();
  ChildProcess agent = StartAgent("one");
  ChildProcess training = StartTraining("one");
  const char* const kNames[] = {"step", "memory_free"};
  for (const char* name : kNames) ASSERT_TRUE(SampledAfter(name, 0)) << name;

  const std::int64_t off_us = NowUs();
  ASSERT_EQ(AdminProfiling({"off"}), "exit 0");
  for (const char* name : kNames) {
    const std::int64_t last_us = LastOf(name);
    EXPECT_LT(last_us - off_us, kFollowedUs) << name;
    std::cout << name << ": last " << (last_us - off_us) / 1000 << " ms after off was asked\n";
  }
  EXPECT_TRUE(training.running()) << "it trains on";

  const std::int64_t on_us = NowUs();
  ASSERT_EQ(AdminProfiling({"on", "--groups", "cpu"}), "exit 0");
  ASSERT_TRUE(SampledAfter("step", on_us));
  ASSERT_TRUE(SampledAfter("cpu_util_simple", on_us));
  EXPECT_LT(LastOf("memory_free"), on_us + kFollowedUs) << "not of that group";
  const std::int64_t again_us = NowUs();
  ASSERT_EQ(AdminProfiling({"on"}), "exit 0");
  EXPECT_TRUE(SampledAfter("memory_free", again_us)) << "what the trial chose itself";
}

TEST_F(AgentDirectivesTest, AgentRule07_TwoAgentsOfOneMachineStoreItsSeriesOnce) {
  StartMaster();
  ChildProcess first = StartAgent("one");
  ASSERT_TRUE(SampledAfter("memory_free", 0));
  ChildProcess second = StartAgent("two");
  ASSERT_TRUE(
      Eventually([&] { return client_->GetStatus().writers_open() == 2; }, absl::Seconds(30)));
  const std::int64_t both_us = NowUs();
  ASSERT_TRUE(SampledBy("one", both_us + 3 * kSecondUs));
  EXPECT_GE(StoredOf("one"), 10);
  EXPECT_LT(NewestOf("memory_free")["two"], both_us + kSecondUs)
      << "at most what it took before it was told";

  const std::int64_t killed_us = NowUs();
  first.Kill();
  ASSERT_TRUE(SampledBy("two", killed_us));
  const std::int64_t stored = StoredOf("two");
  EXPECT_TRUE(Eventually([&] { return StoredOf("two") >= stored + 10; }, absl::Seconds(30)));
  // The first one comes back, as another process: the second goes on.
  first = StartAgent("one");
  ASSERT_TRUE(
      Eventually([&] { return client_->GetStatus().writers_open() == 2; }, absl::Seconds(30)));
  const std::int64_t back_us = NowUs();
  ASSERT_TRUE(SampledBy("two", back_us + 3 * kSecondUs));
  EXPECT_LT(NewestOf("memory_free")["one"], back_us + kSecondUs);
}

}  // namespace
}  // namespace stepwell::testing
