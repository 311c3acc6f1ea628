// Captures on demand: real trainings that were told nothing, two agents, a master, and `stepwell capture`.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "tests/e2e/commands.h"
#include "tests/support/child_process.h"

namespace stepwell::testing {
namespace {

// What we promise, from the moment at which the master hears of it: it waits as long for the agents' answers, and takes none after
// that. How long a command needs to begin on a machine with other things to do is none of it.
constexpr absl::Duration kBeganMax = absl::Seconds(2);

class CaptureTest : public CommandsTest {
 protected:
  ChildProcess StartAgent(int rank) {
    ChildProcess agent;
    agent.Start({BuiltProgram("stepwell"), "agent", "--server", master_->grpc_address(),
                 "--spool-dir", SpoolOf(rank)},
                {{"STEPWELL_AGENT_ID", absl::StrCat("machine", rank)}},
                scratch_ / absl::StrCat("agent", rank, ".log"));
    return agent;
  }
  void MakeText() const {
    if (std::filesystem::exists(scratch_ / "text")) return;
    std::filesystem::create_directory(scratch_ / "text");
    std::ofstream text(scratch_ / "text/corpus.txt");
    for (int i = 0; i < 2000; ++i) text << "the " << i << "th line of a text to learn\n";
  }
  // Each for itself: ranks are as far as they are.
  ChildProcess StartRank(int rank) {
    MakeText();
    ChildProcess training;
    training.Start({BuiltProgram("stepwell-demo"), "--seconds", "120", "--trial", "t", "--data",
                    scratch_ / "text", "--quiet", "--slow-loader", "20"},
                   {{"STEPWELL_SERVER", master_->grpc_address()},
                    {"STEPWELL_SPOOL_DIR", SpoolOf(rank)},
                    {"STEPWELL_ATTEMPT_KEY", "one"},
                    {"RANK", absl::StrCat(rank)},
                    {"WORLD_SIZE", "2"}},
                   scratch_ / absl::StrCat("training", rank, ".log"));
    return training;
  }
  std::string SpoolOf(int rank) { return scratch_ / absl::StrCat("spool", rank); }

  nlohmann::json Capture(const std::vector<std::string>& more, const std::string& ending) {
    std::vector<std::string> words = {"capture", "t", "--json", "--timeout", "20s"};
    words.insert(words.end(), more.begin(), more.end());
    const Ran ran = Command(words);
    EXPECT_EQ(ran.ending, ending) << ran.output;
    const std::size_t json = ran.output.find("{\n");
    if (json == std::string::npos) return {{"told", ran.output}};
    return nlohmann::json::parse(ran.output.substr(json), nullptr, false);
  }
  // Until rank R can be captured alone.
  bool Serves(int rank) {
    return Eventually(
        [&] {
          return Command({"capture", "t", "--ranks", absl::StrCat(rank), "--steps", "1"}).ending ==
                 "exit 0";
        },
        absl::Seconds(60));
  }
  // When the master heard of the newest capture, by its log.
  absl::Time Heard() {
    absl::Time heard = absl::InfiniteFuture();
    for (const absl::string_view line : absl::StrSplit(master_->LogTail(), '\n')) {
      const std::size_t end = line.find('Z');
      if (!absl::StrContains(line, "capture_began") || end == line.npos) continue;
      const std::size_t begin = line.find_first_of("0123456789");
      EXPECT_TRUE(
          absl::ParseTime(absl::RFC3339_full, line.substr(begin, end + 1 - begin), &heard, nullptr))
          << line;
    }
    return heard;
  }
  static std::string ReadWhole(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
};

TEST_F(CaptureTest, TwoRanksGiveTheSameStepsWithoutAWordInTheirScripts) {
  StartMaster();
  ChildProcess first_agent = StartAgent(0);
  ChildProcess first = StartRank(0);
  ASSERT_TRUE(Serves(0)) << master_->LogTail();
  // Some steps behind.
  ChildProcess second_agent = StartAgent(1);
  ChildProcess second = StartRank(1);
  ASSERT_TRUE(Serves(1)) << master_->LogTail();

  const auto captured = Capture({"--ranks", "0,1", "--steps", "4"}, "exit 0");
  ASSERT_EQ(captured["ranks"].size(), 2U) << captured.dump(2);
  const absl::Time heard = Heard();
  const int first_batch = captured["first_batch"];
  std::set<int> batches;
  for (int batch = first_batch; batch < first_batch + 4; ++batch) batches.insert(batch);
  const auto list = nlohmann::json::parse(Command({"trace", "list", "t", "--json"}).output);
  std::string numbers;
  for (int rank = 0; rank < 2; ++rank) {
    const auto& told = captured["ranks"][static_cast<std::size_t>(rank)];
    EXPECT_EQ(told["state"], "stored");
    EXPECT_EQ(told["step_count"], 4);
    EXPECT_EQ(told["left_out_count"], 0);
    const auto listed =
        std::find_if(list["traces"].begin(), list["traces"].end(),
                     [&](const auto& each) { return each["trace_no"] == told["trace_no"]; });
    ASSERT_NE(listed, list["traces"].end()) << list.dump(2);
    EXPECT_EQ((*listed)["header"]["rank"], rank);
    EXPECT_EQ((*listed)["header"]["first_batch"], first_batch);
    EXPECT_EQ((*listed)["header"]["last_batch"], first_batch + 3);
    EXPECT_EQ((*listed)["header"]["machine"], absl::StrCat("machine", rank));
    EXPECT_EQ((*listed)["state"], "complete");
    absl::StrAppend(&numbers, rank == 0 ? "" : " ", told["trace_no"].get<int>());
  }

  // Merged: each rank's process has these steps and no others, with the scopes within them.
  const std::string merged = scratch_ / "merged.json";
  const std::vector<std::string> nos = {numbers.substr(0, numbers.find(' ')),
                                        numbers.substr(numbers.find(' ') + 1)};
  const Ran merging =
      Command({"trace", "merge", nos[0], nos[1], "--trial", "t", "--output", merged});
  ASSERT_EQ(merging.ending, "exit 0") << merging.output;
  const auto events = nlohmann::json::parse(ReadWhole(merged))["traceEvents"];
  std::map<int, std::set<int>> steps;
  std::map<int, int> scopes;
  std::int64_t began_us = INT64_MAX;
  const auto trace = nlohmann::json::parse(ReadWhole(merged));
  const double base_us = trace.value("baseTimeNanoseconds", 0.0) / 1000;
  for (const auto& event : events) {
    if (event.value("ph", "") != "X" || !event.contains("args")) continue;
    if (!event["args"].contains("batch")) continue;
    const int rank = event["args"]["rank"];
    const int batch = event["args"]["batch"];
    EXPECT_TRUE(batches.contains(batch)) << event.dump();
    if (event["name"] == "step") {
      steps[rank].insert(batch);
      began_us = std::min(began_us, static_cast<std::int64_t>(event["ts"].get<double>() + base_us));
    } else {
      ++scopes[rank];
    }
  }
  EXPECT_EQ(steps[0], batches);
  EXPECT_EQ(steps[1], batches);
  EXPECT_GE(scopes[0], 4);
  EXPECT_GE(scopes[1], 4);
  const absl::Duration began = absl::FromUnixMicros(began_us) - heard;
  std::cout << "recorded from " << began << " after the call on\n";
  EXPECT_LT(began, kBeganMax);
  EXPECT_GT(began, -absl::Minutes(1)) << "the log tells of another time";

  // Who cannot says why, and the other gives its own.
  const auto unknown = Capture({"--ranks", "0,7", "--steps", "1"}, "exit 1");
  EXPECT_EQ(unknown["ranks"][0]["state"], "stored") << unknown.dump(2);
  EXPECT_EQ(unknown["ranks"][1]["reason"], "UNKNOWN_RANK");
  second_agent.Kill();
  const auto no_agent = Capture({"--ranks", "0,1", "--steps", "1"}, "exit 1");
  EXPECT_EQ(no_agent["ranks"][0]["state"], "stored") << no_agent.dump(2);
  EXPECT_EQ(no_agent["ranks"][1]["reason"], "NO_AGENT") << no_agent.dump(2);
  // Its next agent serves it as well.
  second_agent = StartAgent(1);
  EXPECT_TRUE(Serves(1)) << master_->LogTail();

  EXPECT_EQ(Command({"caps", "set", "--trial", "t", "--trace-bytes", "10B", "--yes"}).ending,
            "exit 0");
  const auto too_large = Capture({"--ranks", "1"}, "exit 1");
  EXPECT_EQ(too_large["ranks"][0]["reason"], "UPLOAD_REFUSED") << too_large.dump(2);
  EXPECT_EQ(Command({"admin", "profiling", "t", "off"}).ending, "exit 0");
  const auto off = [&] {
    return Command({"capture", "t", "--ranks", "1"}).output.find("NOT_RECORDING") !=
           std::string::npos;
  };
  EXPECT_TRUE(Eventually(off, absl::Seconds(20)));

  first.Signal(SIGKILL);
  const auto ended = [&] {
    return Command({"capture", "t", "--ranks", "0"}).output.find("WRITER_ENDED") !=
           std::string::npos;
  };
  EXPECT_TRUE(Eventually(ended, absl::Seconds(60)));
  // Nothing of them is left on the machines.
  const auto is_left = [&](int rank) {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(SpoolOf(rank) + "/f1/traces")) {
      if (entry.is_regular_file()) return true;
    }
    return false;
  };
  EXPECT_FALSE(is_left(0));
  EXPECT_TRUE(Eventually([&] { return !is_left(1); }, absl::Seconds(20)));
}

// As root, for trainings of a user who may neither write where his captures lie nor lead the agent to another file.
TEST_F(CaptureTest, AnAgentOfAllUsersCapturesRanksOfAUserAsItsOwnDoes) {
  if (geteuid() != 0) GTEST_SKIP() << "only root serves other users";
  namespace fs = std::filesystem;
  constexpr char kUser[] = "40001";
  const std::string system = scratch_ / "system";
  const std::string secret = scratch_ / "secret.pftrace";
  std::ofstream(secret) << "of root alone";
  fs::permissions(secret, fs::perms(0600));
  fs::permissions(scratch_.path(), fs::perms(0755));
  StartMaster();
  ChildProcess agent;
  agent.Start({BuiltProgram("stepwell"), "agent", "--system", "--server", master_->grpc_address()},
              {{"STEPWELL_SYSTEM_ROOT", system}}, scratch_ / "system-agent");
  ASSERT_TRUE(Eventually([&] { return fs::exists(system + "/f1/agent.lock"); }, absl::Seconds(20)))
      << ReadWhole(scratch_ / "system-agent");
  MakeText();
  const auto start = [&](int rank) {
    ChildProcess training;
    training.Start({"/usr/bin/setpriv", "--reuid", kUser, "--regid", kUser, "--clear-groups",
                    BuiltProgram("stepwell-demo"), "--seconds", "120", "--trial", "t", "--data",
                    scratch_ / "text", "--quiet", "--slow-loader", "20"},
                   {{"STEPWELL_SERVER", master_->grpc_address()},
                    {"STEPWELL_SYSTEM_ROOT", system},
                    {"STEPWELL_AGENT", "off"},
                    {"STEPWELL_TRACES", scratch_ / "recorded"},
                    {"STEPWELL_ATTEMPT_KEY", "one"},
                    {"RANK", absl::StrCat(rank)},
                    {"WORLD_SIZE", "2"}},
                   scratch_ / absl::StrCat("training", rank, ".log"));
    return training;
  };
  ChildProcess first = start(0);
  ASSERT_TRUE(Serves(0)) << master_->LogTail() << ReadWhole(scratch_ / "system-agent");
  ChildProcess second = start(1);
  ASSERT_TRUE(Serves(1)) << master_->LogTail();

  // A note as a recorder of his leaves it, of what only root may read.
  ChildProcess hostile;
  const std::string format = system + "/u" + kUser + "/f1";
  hostile.Start(
      {"/usr/bin/setpriv", "--reuid", kUser, "--regid", kUser, "--clear-groups", "/bin/sh", "-c",
       absl::StrCat("mkdir -p ", format, "/traces && printf '{\"path\":\"", secret,
                    "\",\"removes_file\":true,\"writer\":%s}' \"$(cat ", format,
                    "/*-*/writer.json | head -n 1)\" > ", format,
                    "/traces/00000000-0000-4000-8000-000000000000.json")},
      {}, scratch_ / "hostile");
  ASSERT_EQ(hostile.Wait(absl::Seconds(20)), "exit 0") << ReadWhole(scratch_ / "hostile");

  const auto captured = Capture({"--ranks", "0,1", "--steps", "3", "--native"}, "exit 1");
  ASSERT_EQ(captured["ranks"].size(), 2U) << captured.dump(2);
  std::vector<std::string> merge = {"trace", "merge"};
  for (const auto& rank : captured["ranks"]) {
    EXPECT_EQ(rank["state"], "stored") << captured.dump(2);
    EXPECT_EQ(rank["step_count"], 3);
    EXPECT_EQ(rank["native"]["reason"], "ALL_USERS_AGENT") << captured.dump(2);
    merge.push_back(absl::StrCat(rank["trace_no"].get<int>()));
  }
  const std::string merged = scratch_ / "merged.json";
  merge.insert(merge.end(), {"--trial", "t", "--output", merged});
  const Ran merging = Command(merge);
  ASSERT_EQ(merging.ending, "exit 0") << merging.output;
  std::map<int, std::set<int>> steps;
  const auto trace = nlohmann::json::parse(ReadWhole(merged));
  for (const auto& event : trace["traceEvents"]) {
    if (event.value("ph", "") == "X" && event["name"] == "step") {
      steps[event["args"]["rank"]].insert(event["args"]["batch"].get<int>());
    }
  }
  const int first_batch = captured["first_batch"];
  const std::set<int> batches = {first_batch, first_batch + 1, first_batch + 2};
  EXPECT_EQ(steps[0], batches);
  EXPECT_EQ(steps[1], batches);

  const fs::path own = system + "/f1/u" + kUser;
  struct stat status {};
  ASSERT_EQ(lstat(own.c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 0U);
  EXPECT_EQ(status.st_mode & 07777, 0700U);
  const auto is_empty = [&] {
    for (const auto& entry : fs::recursive_directory_iterator(own)) {
      if (entry.is_regular_file()) return false;
    }
    return true;
  };
  EXPECT_TRUE(Eventually(is_empty, absl::Seconds(20)));
  EXPECT_EQ(ReadWhole(secret), "of root alone");
  EXPECT_FALSE(fs::exists(scratch_ / "recorded")) << "a path that a user names";
  const auto list = nlohmann::json::parse(Command({"trace", "list", "t", "--json"}).output);
  for (const auto& each : list["traces"]) {
    EXPECT_EQ(each["header"]["name"].get<std::string>().find("capture-"), 0U) << each.dump();
  }
  agent.Signal(SIGTERM);
  EXPECT_EQ(agent.Wait(absl::Seconds(20)), "exit 0") << ReadWhole(scratch_ / "system-agent");
}

TEST_F(CaptureTest, ATrialWithoutAnOpenRankHasNothingToCapture) {
  StartMaster();
  Record("t", 100);
  const auto none = Command({"capture", "t"});
  EXPECT_EQ(none.ending, "exit 1");
  EXPECT_NE(none.output.find("no rank of the trial is open"), std::string::npos) << none.output;
}

}  // namespace
}  // namespace stepwell::testing
