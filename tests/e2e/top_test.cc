// `stepwell top` on a terminal, beside a real training program, its agent and its master.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "tests/e2e/spine.h"
#include "tests/support/child_process.h"
#include "tests/support/pty_child.h"

namespace stepwell::testing {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kGivenBack[] = "\033[?7h\033[?25h\033[?1049l";
constexpr char kScope[] = "train_batch";

class TopTest : public SpineTest {
 protected:
  // A trial named "topped" on a machine named "node-top".
  void StartTrial() {
    StartMaster();
    agent_.Start({BuiltProgram("stepwell"), "agent", "--server", master_->grpc_address(),
                  "--spool-dir", scratch_ / "spool", "--trial", "topped"},
                 {{"STEPWELL_AGENT_ID", "node-top"}}, scratch_ / "agent.log");
    std::filesystem::create_directory(scratch_ / "text");
    std::ofstream text(scratch_ / "text/corpus.txt");
    for (int i = 0; i < 2000; ++i) text << "the " << i << "th line of a text to learn\n";
    text.close();
    trainer_.Start({BuiltProgram("stepwell-demo"), "--trial", "topped", "--seconds", "600",
                    "--slow-loader", "20", "--data", scratch_ / "text"},
                   {{"STEPWELL_SPOOL_DIR", scratch_ / "spool"}}, scratch_ / "demo.log");
    ASSERT_TRUE(Eventually(
        [&] {
          return Top({"topped", "--once"}) == "exit 0" && absl::StrContains(said_, kScope) &&
                 absl::StrContains(said_, "cpu_util_simple");
        },
        absl::Seconds(60)))
        << said_;
  }

  // Without a terminal; how it ended, with what it said in said_.
  std::string Top(std::vector<std::string> words) {
    const std::string log = scratch_ / absl::StrCat("said-", ++count_);
    words.insert(words.begin(), {BuiltProgram("stepwell"), "top"});
    words.insert(words.end(), {"--server", master_->grpc_address()});
    ChildProcess top;
    top.Start(words, {{"TERM", "xterm"}, {"LC_ALL", "C.UTF-8"}}, log);
    const std::string ending = top.Wait(absl::Seconds(60));
    std::ifstream file(log);
    said_ = {std::istreambuf_iterator<char>(file), {}};
    return ending;
  }

  std::unique_ptr<PtyChild> OnTerminal(const std::map<std::string, std::string>& more = {}) {
    std::map<std::string, std::string> environment = {
        {"TERM", "xterm"}, {"LC_ALL", "C.UTF-8"}, {"NO_COLOR", ""}};
    for (const auto& [name, value] : more) environment[name] = value;
    return std::make_unique<PtyChild>(
        std::vector<std::string>{BuiltProgram("stepwell"), "top", "--interval", "100ms", "--server",
                                 master_->grpc_address()},
        environment, 80, 40);
  }

  // The last whole frame, without codes, as lines.
  static std::vector<std::string> LastFrame(const std::string& shown) {
    const std::size_t end = shown.rfind("\033[J");
    if (end == std::string::npos) return {};
    const std::size_t begin = shown.rfind("\033[H", end);
    const std::string frame = shown.substr(begin, end - begin);
    const std::string plain = std::regex_replace(frame, std::regex("\033\\[[0-9;?]*[A-Za-z]"), "");
    return absl::StrSplit(plain, absl::ByAnyChar("\r\n"), absl::SkipEmpty());
  }

  static std::size_t WidestOf(const std::vector<std::string>& lines) {
    std::size_t widest = 0;
    for (const std::string& line : lines) {
      widest = std::max<std::size_t>(widest, std::count_if(line.begin(), line.end(), [](char c) {
                                       return (c & 0xc0) != 0x80;
                                     }));
    }
    return widest;
  }

  ChildProcess agent_;
  ChildProcess trainer_;
  int count_ = 0;
  std::string said_;
};

TEST_F(TopTest, WithoutATerminalItIsOneLook) {
  StartTrial();
  EXPECT_THAT(said_, Not(HasSubstr("\033")));
  EXPECT_THAT(said_, HasSubstr("Machine node-top"));
  EXPECT_THAT(said_, HasSubstr("dataloader_next"));
  EXPECT_EQ(Top({}), "exit 0") << said_;
  EXPECT_THAT(said_, StartsWith("topped  running")) << "the newest that runs";
  EXPECT_EQ(Top({"--machine", "node-top"}), "exit 0") << said_;
  EXPECT_THAT(said_, StartsWith("node-top"));
  EXPECT_THAT(said_, HasSubstr("topped"));
  EXPECT_THAT(said_, HasSubstr("cpu_util_simple"));
  EXPECT_EQ(Top({"--machine", "node-none"}), "exit 1");
  EXPECT_THAT(said_, HasSubstr("no running trial has samples of the machine 'node-none'"));
  ASSERT_EQ(Top({"topped", "--json"}), "exit 0") << said_;
  const auto json = nlohmann::json::parse(said_);
  EXPECT_EQ(json["trials"][0]["trial"]["external_id"], "topped");
  EXPECT_GT(json["trials"][0]["batch"], 0);
  EXPECT_GT(json["metrics"].size(), 10U);
}

TEST_F(TopTest, LivesOnATerminalAndGivesItBack) {
  StartTrial();
  const std::unique_ptr<PtyChild> top = OnTerminal();
  ASSERT_TRUE(top->WaitFor(kScope, absl::Seconds(30))) << top->shown();
  EXPECT_THAT(top->shown(), StartsWith("\033[?1049h\033[?25l"));
  ASSERT_TRUE(top->WaitFor("\033[J", absl::Seconds(30)));
  EXPECT_FALSE(top->IsRestored());

  top->Resize(50, 20);
  ASSERT_TRUE(Eventually(
      [&] {
        top->Forget();
        return top->WaitFor("\033[J", absl::Seconds(5)) && LastFrame(top->shown()).size() <= 20 &&
               WidestOf(LastFrame(top->shown())) <= 50;
      },
      absl::Seconds(30)))
      << top->shown();

  top->Forget();
  top->Type("q");
  EXPECT_EQ(top->Wait(absl::Seconds(20)), "exit 0");
  EXPECT_THAT(top->shown(), EndsWith(kGivenBack));
  EXPECT_TRUE(top->IsRestored());
}

TEST_F(TopTest, EndsBySignalsAsByAKey) {
  StartTrial();
  for (const bool by_key : {true, false}) {
    const std::unique_ptr<PtyChild> top = OnTerminal({{"NO_COLOR", "1"}});
    ASSERT_TRUE(top->WaitFor(kScope, absl::Seconds(30))) << top->shown();
    EXPECT_THAT(top->shown(), Not(HasSubstr("\033[1m"))) << "NO_COLOR";
    // Ctrl-C is a signal to whoever has the terminal.
    by_key ? top->Type("\003") : top->Signal(SIGTERM);
    EXPECT_EQ(top->Wait(absl::Seconds(20)), "exit 0");
    EXPECT_THAT(top->shown(), EndsWith(kGivenBack));
    EXPECT_TRUE(top->IsRestored());
  }
}

TEST_F(TopTest, OutlivesTheMasterAndSaysSo) {
  StartTrial();
  const std::unique_ptr<PtyChild> top = OnTerminal();
  ASSERT_TRUE(top->WaitFor(kScope, absl::Seconds(30))) << top->shown();
  master_->Kill();
  top->Forget();
  ASSERT_TRUE(top->WaitFor("no answer since", absl::Seconds(30))) << top->shown();
  EXPECT_TRUE(top->WaitFor(kScope, absl::Seconds(30))) << "what was known stays";
  ASSERT_TRUE(master_->StartAndWait()) << master_->LogTail();
  EXPECT_TRUE(Eventually(
      [&] {
        top->Forget();
        return top->WaitFor("\033[J", absl::Seconds(5)) &&
               !absl::StrContains(top->shown(), "no answer");
      },
      absl::Seconds(60)))
      << top->shown();
  // A master that hangs holds up nobody who wants to leave.
  master_->Pause();
  top->Type("q");
  EXPECT_EQ(top->Wait(absl::Seconds(20)), "exit 0");
  EXPECT_TRUE(top->IsRestored());
  master_->Continue();
}

}  // namespace
}  // namespace stepwell::testing
