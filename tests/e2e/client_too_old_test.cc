// An agent that is older than its master allows, a real one of each.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "nlohmann/json.hpp"
#include "tests/e2e/spine.h"
#include "tests/support/child_process.h"

namespace stepwell::testing {
namespace {

constexpr char kTrial[] = "of-an-old-agent";

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

int CountOf(const std::string& text, const std::string& word) {
  int count = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

class ClientTooOldTest : public SpineTest {
 protected:
  void Allow(const std::string& minimum) {
    std::ofstream(scratch_ / "settings") << "minimum-agent-version = \"" << minimum << "\"\n";
  }
  std::string Record(int count) {
    ChildProcess trial;
    trial.Start({BuiltProgram("small_trial"), "return", absl::StrCat(count), "0"},
                {{"STEPWELL_SERVER", master_->grpc_address()},
                 {"STEPWELL_SPOOL_DIR", scratch_ / "spool"},
                 {"STEPWELL_TRIAL", kTrial}},
                scratch_ / "trial.log");
    return trial.Wait(absl::Seconds(60));
  }
  ChildProcess StartAgent() {
    ChildProcess agent;
    agent.Start({BuiltProgram("stepwell"), "agent", "--server", master_->grpc_address(),
                 "--spool-dir", scratch_ / "spool", "--no-auto-sampling"},
                {}, scratch_ / "agent.log");
    return agent;
  }
  // The writers of `stepwell agent status --json`.
  nlohmann::json Status() {
    // What several runs say would lie in one file.
    std::filesystem::remove(scratch_ / "status.json");
    ChildProcess status;
    status.Start(
        {BuiltProgram("stepwell"), "agent", "status", "--json", "--spool-dir", scratch_ / "spool"},
        {}, scratch_ / "status.json");
    EXPECT_EQ(status.Wait(absl::Seconds(30)), "exit 0");
    const auto shown = nlohmann::json::parse(ReadText(scratch_ / "status.json"), nullptr, false);
    return shown.is_object() ? shown["spools"][0]["writers"] : nlohmann::json::array();
  }
  bool Each(const std::function<bool(const nlohmann::json&)>& holds, std::size_t count) {
    const nlohmann::json writers = Status();
    return writers.size() == count && std::all_of(writers.begin(), writers.end(), holds);
  }
  std::int64_t StoredCount() {
    EXPECT_TRUE(client_->Flush().ok());
    return QueryNumber(
        "select count(*) from stepwell.samples((select max(trial_id) from stepwell.trials where"
        " trial_id >= $1), 'start', 'numbered')",
        1);
  }
};

TEST_F(ClientTooOldTest, AgentRule05_KeepsItsSpoolSaysSoOnceAndDeliversWhereItIsAllowed) {
  Allow("99.0.0");
  StartMaster({"--config", scratch_ / "settings"});
  ChildProcess agent = StartAgent();
  ASSERT_EQ(Record(100), "exit 7");
  ASSERT_EQ(Record(50), "exit 7");
  const auto is_refused = [](const nlohmann::json& writer) {
    return writer["refusal"].get<std::string>().find("99.0.0") != std::string::npos &&
           writer["unacked_frames"] > 0;
  };
  ASSERT_TRUE(Eventually([&] { return Each(is_refused, 2); }, absl::Seconds(30)))
      << Status().dump();
  EXPECT_EQ(CountOf(ReadText(scratch_ / "agent.log"), "agent_too_old"), 1)
      << ReadText(scratch_ / "agent.log");
  EXPECT_EQ(CountOf(ReadText(scratch_ / "agent.log"), "writer_refused"), 0);

  // The next agent, here: a master that takes this one.
  master_->Stop();
  Allow("0.1.0");
  ASSERT_TRUE(master_->StartAndWait()) << master_->LogTail();
  EXPECT_TRUE(Eventually([&] { return StoredCount() == 150; }, absl::Seconds(60)));
  const auto is_stored = [](const nlohmann::json& writer) {
    return writer["refusal"] == "" && writer["state"] == "stored";
  };
  EXPECT_TRUE(Eventually([&] { return Each(is_stored, 2); }, absl::Seconds(30))) << Status().dump();
  EXPECT_EQ(CountOf(ReadText(scratch_ / "agent.log"), "agent_too_old"), 1);
}

}  // namespace
}  // namespace stepwell::testing
