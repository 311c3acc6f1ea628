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
  ChildProcess StartTraining(const std::string& spool, const std::string& interval = "") {
    std::filesystem::create_directory(scratch_ / "text");
    std::ofstream text(scratch_ / "text/corpus.txt");
    for (int i = 0; i < 2000; ++i) text << "the " << i << "th line of a text to learn\n";
    text.close();
    ChildProcess training;
    training.Start({BuiltProgram("stepwell-demo"), "--seconds", "120", "--trial", kTrial, "--data",
                    scratch_ / "text", "--quiet"},
                   {{"STEPWELL_SERVER", master_->grpc_address()},
                    {"STEPWELL_SPOOL_DIR", scratch_ / spool},
                    {"STEPWELL_INTERVAL", interval}},
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
  // When the machine was sampled in the second before its newest sample, in order.
  std::vector<std::int64_t> TicksOfASecond() {
    EXPECT_TRUE(client_->Flush().ok());
    auto connection = PgConnection::Open({.url = master_->database_url()});
    EXPECT_TRUE(connection.ok()) << connection.status();
    const auto rows = (*connection)
                          ->Exec(
                              "select \"timestamp\" from stepwell.samples((select trial_id from "
                              "stepwell.trials where external_id = $1), 'memory', 'memory_free') "
                              "order by 1 desc limit 200",
                              {kTrial});
    EXPECT_TRUE(rows.ok()) << rows.status();
    std::vector<std::int64_t> ticks_us;
    for (int row = 0; rows.ok() && row < rows->row_count(); ++row) {
      const std::int64_t time_us = rows->TimestampUs(row, 0);
      if (!ticks_us.empty() && ticks_us.front() - time_us >= kSecondUs) break;
      ticks_us.push_back(time_us);
    }
    std::reverse(ticks_us.begin(), ticks_us.end());
    return ticks_us;
  }
  // Until a second had ticks that are `interval` apart, but for those that an occupied machine missed.
  bool BecomesSampledEach(absl::Duration interval) {
    const std::int64_t interval_us = absl::ToInt64Microseconds(interval);
    std::vector<std::int64_t> gaps_us;
    const bool is_so = Eventually(
        [&] {
          const std::vector<std::int64_t> ticks_us = TicksOfASecond();
          gaps_us.clear();
          for (std::size_t i = 1; i < ticks_us.size(); ++i) {
            gaps_us.push_back(ticks_us[i] - ticks_us[i - 1]);
          }
          std::sort(gaps_us.begin(), gaps_us.end());
          if (std::ssize(gaps_us) < kSecondUs / interval_us / 2) return false;
          const std::int64_t median_us = gaps_us[gaps_us.size() / 2];
          return median_us > interval_us * 4 / 5 && median_us < interval_us * 5 / 4;
        },
        absl::Seconds(30));
    std::cout << gaps_us.size() + 1 << " ticks in a second, wanted each " << interval << "\n";
    return is_so;
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

TEST_F(AgentDirectivesTest, AgentRule12_AnIntervalThatIsAskedForReachesTheSampler) {
  StartMaster();
  ChildProcess agent = StartAgent("one");
  ChildProcess training = StartTraining("one", "100ms");
  ASSERT_TRUE(BecomesSampledEach(absl::Milliseconds(100))) << "as the trial chose, not its agent";
  ASSERT_EQ(AdminProfiling({"on", "--interval", "20ms"}), "exit 0");
  EXPECT_TRUE(BecomesSampledEach(absl::Milliseconds(20)));
  ASSERT_EQ(AdminProfiling({"on"}), "exit 0");
  EXPECT_TRUE(BecomesSampledEach(absl::Milliseconds(100))) << "what the trial chose itself";
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
