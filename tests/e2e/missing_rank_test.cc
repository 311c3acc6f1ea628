// A rank whose samples never leave its process, seen from where one asks how complete a trial is.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "nlohmann/json.hpp"
#include "tests/e2e/spine.h"
#include "tests/support/child_process.h"

namespace stepwell::testing {
namespace {

class MissingRankTest : public SpineTest {
 protected:
  // One of two ranks; `spool` is where it may record.
  std::string RunRank(int rank, const std::string& spool) {
    ChildProcess trial;
    trial.Start({BuiltProgram("small_trial"), "memory", "100", "0"},
                {{"STEPWELL_SERVER", master_->grpc_address()},
                 {"STEPWELL_SPOOL_DIR", spool},
                 {"STEPWELL_TRIAL", "half-seen"},
                 {"RANK", absl::StrCat(rank)},
                 {"WORLD_SIZE", "2"},
                 {"MASTER_ADDR", "localhost"},
                 {"MASTER_PORT", "29500"}},
                scratch_ / "trial.log");
    return trial.Wait(absl::Seconds(60));
  }
  std::string Say(std::vector<std::string> words) {
    std::filesystem::remove(scratch_ / "said");
    words.insert(words.begin(), BuiltProgram("stepwell"));
    ChildProcess command;
    command.Start(words, {{"STEPWELL_SERVER", master_->grpc_address()}}, scratch_ / "said");
    command.Wait(absl::Seconds(30));
    std::ifstream file(scratch_ / "said");
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
};

TEST_F(MissingRankTest, AgentRule06_ARankThatRecordsIntoMemoryOnlyIsNamed) {
  StartMaster();
  ChildProcess agent;
  agent.Start({BuiltProgram("stepwell"), "agent", "--server", master_->grpc_address(),
               "--spool-dir", scratch_ / "spool", "--no-auto-sampling"},
              {}, scratch_ / "agent.log");
  EXPECT_EQ(RunRank(0, scratch_ / "spool"), "exit 7");
  EXPECT_EQ(RunRank(1, "/dev/null/no-directory"), "exit 7");
  ASSERT_TRUE(Eventually([&] { return Say({"trials"}).find("completed") != std::string::npos; },
                         absl::Seconds(30)))
      << Say({"trials"});
  const auto report = nlohmann::json::parse(Say({"report", "half-seen", "--json"}), nullptr, false);
  ASSERT_TRUE(report.is_object()) << Say({"report", "half-seen"});
  EXPECT_EQ(report["completeness"]["ranks_missing"], nlohmann::json::parse("[1]"));
  EXPECT_EQ(report["completeness"]["ranks_missing_count"], 1);
  EXPECT_EQ(report["completeness"]["contiguous"], false);
  const std::string text = Say({"report", "half-seen"});
  EXPECT_NE(text.find("Rank 1 never opened: recorded into memory only"), std::string::npos) << text;
}

}  // namespace
}  // namespace stepwell::testing
