// What agents that were killed recorded: it gets its name by the next one, or by an upload, and is with its trial.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/e2e/commands.h"
#include "tests/support/child_process.h"

namespace stepwell::testing {
namespace {

namespace fs = std::filesystem;

class LeftTracesTest : public CommandsTest {
 protected:
  void SetUp() override {
    StartMaster();
    fs::create_directory(scratch_ / "texts");
    std::ofstream text(scratch_ / "texts/one.txt");
    for (int i = 0; i < 500; ++i) text << "the quick brown fox jumps over the lazy dog. ";
  }
  void StartAgent(ChildProcess& agent) {
    agent.Start({BuiltProgram("stepwell"), "agent", "--server", master_->grpc_address(),
                 "--spool-dir", scratch_ / "spool"},
                {}, scratch_ / "agent-log");
  }
  void StartTraining(ChildProcess& training, const std::string& trial, const char* is_offline) {
    training.Start({BuiltProgram("stepwell-demo"), "--data", scratch_ / "texts", "--seconds", "120",
                    "--quiet", "--trial", trial},
                   {{"STEPWELL_SERVER", master_->grpc_address()},
                    {"STEPWELL_OFFLINE", is_offline},
                    {"STEPWELL_SPOOL_DIR", scratch_ / "spool"},
                    {"STEPWELL_TRACES", scratch_ / "traces"}},
                   scratch_ / "training-log");
  }
  std::vector<std::string> Names(const char* start) const {
    std::vector<std::string> found;
    std::error_code error;
    for (const auto& each : fs::directory_iterator(scratch_ / "traces", error)) {
      const std::string name = each.path().filename();
      if (name.rfind(start, 0) == 0) found.push_back(name);
    }
    return found;
  }
  std::string PathOf(const std::string& name) const {
    return absl::StrCat(scratch_ / "traces/", name);
  }
  std::string All() const {
    std::stringstream log;
    log << std::ifstream(scratch_ / "agent-log").rdbuf();
    return absl::StrCat(::testing::PrintToString(Names("")), "\n", log.str());
  }
  // Some of what an agent has under its hands is on the disk.
  bool BecomesRecorded() const {
    return Eventually(
        [&] {
          std::error_code error;
          const std::vector<std::string> names = Names("recording-");
          return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
            return fs::file_size(PathOf(name), error) + 1 > 5000;
          });
        },
        absl::Seconds(60));
  }
  // Under another name, too: so it is known again.
  void Mark(const std::string& name) const {
    fs::create_hard_link(PathOf(name), scratch_ / "marked");
  }
  bool IsMarked(const std::string& name) const {
    return fs::equivalent(PathOf(name), scratch_ / "marked");
  }
};

// The first agent dies while the training goes on, the second with it, and the third has nobody to serve but the spool.
TEST_F(LeftTracesTest, TheNextAgentGivesThemTheirNamesAndTheyAreWithTheirTrial) {
  ChildProcess first, second, third, training;
  StartAgent(first);
  StartTraining(training, "survived", "");
  ASSERT_TRUE(BecomesRecorded()) << All();
  first.Kill();
  ASSERT_EQ(Names("recording-").size(), 1U) << All();
  Mark(Names("recording-")[0]);
  StartAgent(second);
  ASSERT_TRUE(Eventually([&] { return Names("ep0-ba").size() == 1; }, absl::Seconds(60))) << All();
  EXPECT_TRUE(IsMarked(Names("ep0-ba")[0])) << All();
  ASSERT_TRUE(BecomesRecorded()) << All();
  second.Kill();
  training.Kill();
  StartAgent(third);
  std::string listed;
  const auto are_stored = [&] {
    const std::vector<std::string> names = Names("ep0-ba");
    const Ran ran = Command({"trace", "list", "survived", "--json"});
    listed = ran.output;
    const auto list = nlohmann::json::parse(ran.output, nullptr, false);
    if (ran.ending != "exit 0" || names.size() < 2 || !Names("recording-").empty()) return false;
    return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
      return std::any_of(list["traces"].begin(), list["traces"].end(), [&](const auto& each) {
        const int last_batch = each["header"].value("last_batch", -1);
        const std::string end = absl::StrCat("ep0-ba", last_batch + 1, "-rank0");
        return each["state"] == "complete" && each["header"]["name"] == name &&
               name.rfind(end, 0) == 0;
      });
    });
  };
  EXPECT_TRUE(Eventually(are_stored, absl::Seconds(60))) << listed << All();
}

// Nobody but the uploader comes after it: who has a copy and does not say that what its notes name is his, and who has it itself.
TEST_F(LeftTracesTest, OfWhatWasRecordedOfflineAnUploadDoesOnceItIsSaidWhoseItIs) {
  ChildProcess agent, training;
  StartAgent(agent);
  StartTraining(training, "later", "1");
  ASSERT_TRUE(BecomesRecorded()) << All();
  agent.Kill();
  training.Kill();
  ASSERT_EQ(Names("recording-").size(), 1U) << All();
  const std::string left = Names("recording-")[0];
  Mark(left);
  fs::copy(scratch_ / "spool", scratch_ / "copy", fs::copy_options::recursive);
  Ran upload = Command({"upload", scratch_ / "copy"});
  EXPECT_EQ(upload.ending, "exit 1") << upload.output;
  EXPECT_NE(upload.output.find("--named-files sends"), std::string::npos) << upload.output;
  ASSERT_EQ(Names("recording-").size(), 1U) << All() << upload.output;
  EXPECT_TRUE(IsMarked(left)) << All();
  // All samples are stored then, and the trace alone waits: it is asked for once more, and sent.
  upload = Command({"upload", scratch_ / "spool"});
  EXPECT_EQ(upload.ending, "exit 1") << upload.output;
  EXPECT_NE(upload.output.find("left: the file lies outside"), std::string::npos) << upload.output;
  upload = Command({"upload", scratch_ / "spool", "--named-files"});
  EXPECT_EQ(upload.ending, "exit 0") << upload.output;
  EXPECT_TRUE(Names("recording-").empty()) << All() << upload.output;
  const std::vector<std::string> names = Names("ep0-ba");
  const auto marked = std::find_if(names.begin(), names.end(),
                                   [&](const std::string& name) { return IsMarked(name); });
  ASSERT_NE(marked, names.end()) << All() << upload.output;
  const Ran list = Command({"trace", "list", "later", "--json"});
  EXPECT_NE(list.output.find(*marked), std::string::npos) << list.output << upload.output;
}

}  // namespace
}  // namespace stepwell::testing
