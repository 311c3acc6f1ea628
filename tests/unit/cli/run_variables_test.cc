#include "client/cli/run_variables.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "nlohmann/json.hpp"
#include "tests/unit/cli/outcome.h"

namespace stepwell::cli {
namespace {

using Words = std::vector<std::string>;

TEST(RunWordsTest, OptionsEndAtTheFirstWordThatIsNone) {
  const struct {
    const char* name;
    Words given;
    Words split;
  } rows[] = {
      {"a program alone", {"./train"}, {"--", "./train"}},
      {"its own options", {"./train", "--trial", "x"}, {"--", "./train", "--trial", "x"}},
      {"its own --", {"./train", "--", "x"}, {"--", "./train", "--", "x"}},
      {"a value is no program", {"--trial", "x", "y"}, {"--trial=x", "--", "y"}},
      {"a value like an option", {"--trial", "-x", "y"}, {"--trial=-x", "--", "y"}},
      {"a flag has none", {"--offline", "x"}, {"--offline", "--", "x"}},
      {"with =", {"--trial=x", "y"}, {"--trial=x", "--", "y"}},
      {"after --", {"--offline", "--", "--trial"}, {"--offline", "--", "--trial"}},
      {"no value", {"--trial", "--", "y"}, {"--trial"}},
      {"nothing", {}, {"--"}},
      {"- is a word", {"-", "x"}, {"--", "-", "x"}},
  };
  for (const auto& row : rows) EXPECT_EQ(SplitRunWords(row.given), row.split) << row.name;
}

class RunVariablesTest : public ::testing::Test {
 protected:
  RunVariablesTest() {
    // Of this test alone: another of them may run beside it.
    std::string made = ::testing::TempDir() + "run-variables-XXXXXX";
    folder_ = mkdtemp(made.data());
    std::filesystem::create_directories(folder_ + "/bin");
    std::filesystem::create_directories(folder_ + "/here");
    for (const char* name : {"/bin/other", "/bin/own"}) {
      std::ofstream(folder_ + name) << "#!/bin/sh\n";
      chmod((folder_ + name).c_str(), 0755);
    }
    std::ofstream(folder_ + "/here/file") << "no program";
  }
  ~RunVariablesTest() override { std::filesystem::remove_all(folder_); }

  // What `words` before a program set; `agent` is STEPWELL_AGENT.
  absl::StatusOr<RunVariables> Read(Words words, const char* agent = "off") {
    CommandOptions options("run", "PROGRAM [ARGS...]", "", CommandOptions::Asks::kNobody);
    AddRunOptions(options);
    words.emplace_back("./train");
    std::ostringstream out;
    std::ostringstream err;
    const std::optional<int> exit = options.Parse(SplitRunWords(words), {out, err});
    EXPECT_EQ(exit, std::nullopt) << err.str();
    const std::string path = folder_ + "/bin";
    recorder::ProgramSurroundings around;
    around.environment = [&](const char* name) -> const char* {
      const auto set = set_.find(name);
      if (set != set_.end()) return set->second.c_str();
      return name == std::string("PATH")             ? path.c_str()
             : name == std::string("STEPWELL_AGENT") ? agent
                                                     : nullptr;
    };
    around.working_directory = folder_ + "/here";
    around.executable = folder_ + "/bin/own";
    return ReadRunVariables(options, around);
  }
  std::string folder_;
  std::map<std::string, std::string> set_;  // variables beside PATH and STEPWELL_AGENT
};

TEST_F(RunVariablesTest, OptionsWinOverVariablesThatWouldMakeThemOfNoUse) {
  set_ = {{"STEPWELL_OFFLINE", "1"}, {"STEPWELL_SYSTEM_METRICS", "0"}};
  EXPECT_EQ(*Read({"--server", "a:1"}),
            (RunVariables{{"STEPWELL_SERVER", "a:1"}, {"STEPWELL_OFFLINE", "0"}}));
  EXPECT_EQ(*Read({"--groups", "cpu"}),
            (RunVariables{{"STEPWELL_GROUPS", "cpu"}, {"STEPWELL_SYSTEM_METRICS", "1"}}));
  EXPECT_EQ(*Read({"--trial", "a"}), (RunVariables{{"STEPWELL_TRIAL", "a"}}));
}

TEST_F(RunVariablesTest, EachOptionSetsItsVariableAndNothingElse) {
  const std::string here = folder_ + "/here";
  const struct {
    Words words;
    std::string variable;
    std::string value;
  } rows[] = {
      {{"--trial", "my run"}, "STEPWELL_TRIAL", "my run"},
      {{"--trial", "id:7"}, "STEPWELL_TRIAL", "id:7"},
      {{"--project", "vision_2"}, "STEPWELL_PROJECT", "vision_2"},
      {{"--attempt-key", "3rd"}, "STEPWELL_ATTEMPT_KEY", "3rd"},
      {{"--server", "[::1]:7817"}, "STEPWELL_SERVER", "[::1]:7817"},
      {{"--server", "offline"}, "STEPWELL_SERVER", "offline"},
      {{"--offline"}, "STEPWELL_OFFLINE", "1"},
      {{"--interval", "10ms"}, "STEPWELL_INTERVAL", "10ms"},
      {{"--interval", "1h"}, "STEPWELL_INTERVAL", "1h"},
      {{"--groups", "cpu, gpu"}, "STEPWELL_GROUPS", "cpu, gpu"},
      {{"--without", "disk_util"}, "STEPWELL_WITHOUT", "disk_util"},
      {{"--with", "cpu_util_core"}, "STEPWELL_WITH", "cpu_util_core"},
      {{"--no-system-metrics"}, "STEPWELL_SYSTEM_METRICS", "0"},
      {{"--spool-dir", here}, "STEPWELL_SPOOL_DIR", here},
      {{"--spool-dir", "new"}, "STEPWELL_SPOOL_DIR", here + "/new"},
      {{"--traces", "new"}, "STEPWELL_TRACES", here + "/new"},
      {{"--agent", "off"}, "STEPWELL_AGENT", "off"},
      {{"--agent", "other"}, "STEPWELL_AGENT", "other"},
      {{"--agent", "../bin/other"}, "STEPWELL_AGENT", "../bin/other"},
      {{"--exit-wait", "0"}, "STEPWELL_EXIT_WAIT", "0"},
      {{"--exit-wait", "2.5"}, "STEPWELL_EXIT_WAIT", "2.5"},
      {{"--disabled"}, "STEPWELL_DISABLED", "1"},
      {{"--no-hooks"}, "STEPWELL_HOOKS", "0"},
      {{"--trial", "a", "--trial", "b"}, "STEPWELL_TRIAL", "b"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.words.back());
    const absl::StatusOr<RunVariables> variables = Read(row.words);
    ASSERT_TRUE(variables.ok()) << variables.status();
    EXPECT_EQ(*variables, (RunVariables{{row.variable, row.value}}));
  }
}

TEST_F(RunVariablesTest, WhatNoRecorderWouldUnderstandIsRefused) {
  const struct {
    Words words;
    std::string says;
  } rows[] = {
      {{"--trial="}, "--trial is ''; allowed: a name of 1 ... 256 bytes, or id: and a number"},
      {{"--trial", "id:0"}, "--trial is 'id:0'; allowed: a name"},
      {{"--trial", "id:seven"}, "--trial is 'id:seven'; allowed: a name"},
      {{"--trial", "a\tb"}, "allowed: a name"},
      {{"--trial", std::string(257, 'a')}, "allowed: a name"},
      {{"--trial", "caf\xe9"}, "allowed: a name"},
      {{"--project", "a b"}, "--project is 'a b'; allowed: 1 ... 256 of A-Z"},
      {{"--project", "p", "--trial", "id:7"}, "--project goes with a name"},
      {{"--attempt-key="}, "--attempt-key is ''; allowed: 1 ... 256 bytes"},
      {{"--server", "master"}, "--server is 'master'; allowed: HOST:PORT, or offline"},
      {{"--server", "a:b"}, "--server is 'a:b'; allowed"},
      {{"--interval", "9ms"},
       "--interval is '9ms'; allowed: a duration such as 250ms, 10ms ... 1h"},
      {{"--interval", "61m"}, "--interval is '61m'; allowed"},
      {{"--interval", "soon"}, "--interval is 'soon'; allowed"},
      {{"--groups", "cpu,gpus"},
       "--groups is 'cpu,gpus'; allowed: of cpu, disk, gpu, memory, network"},
      {{"--groups", " ,"}, "--groups is ' ,'; allowed"},
      {{"--without", "cpu_utils"}, "--without is 'cpu_utils'; allowed: system metrics"},
      {{"--with", "cpu"}, "--with is 'cpu'; allowed: system metrics"},
      {{"--spool-dir="}, "--spool-dir is ''; allowed: a directory"},
      {{"--spool-dir", "file"}, "--spool-dir is 'file'; allowed: a directory"},
      {{"--spool-dir", "no/such"}, "--spool-dir is 'no/such'; allowed: a directory"},
      {{"--traces", "no/such"}, "--traces is 'no/such'; allowed: a directory"},
      {{"--agent", "othr"}, "--agent is 'othr'; allowed: a program's path, a name on PATH, or off"},
      {{"--agent", "./file"}, "--agent is './file'; allowed"},
      {{"--exit-wait", "-1"}, "--exit-wait is '-1'; allowed: seconds, 0 ... 3600"},
      {{"--exit-wait", "5s"}, "--exit-wait is '5s'; allowed"},
      {{"--offline", "--server", "a:1"}, "--server is of no use with --offline"},
      {{"--no-system-metrics", "--with", "cpu_util_core"}, "--with is of no use with --no-sys"},
      {{"--json"}, "--json goes with --print"},
  };
  for (const auto& row : rows) {
    const absl::Status status = Read(row.words).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << row.says;
    EXPECT_NE(status.message().find(row.says), absl::string_view::npos) << status;
  }
}

// A program elsewhere would find no agent beside itself.
TEST_F(RunVariablesTest, WhereNobodyNamesAnAgentAndPathHasNoneItIsThisProgram) {
  EXPECT_EQ(*Read({}, nullptr), (RunVariables{{"STEPWELL_AGENT", folder_ + "/bin/own"}}));
  EXPECT_EQ(*Read({}, ""), (RunVariables{{"STEPWELL_AGENT", folder_ + "/bin/own"}}));
  EXPECT_EQ(*Read({}, "elsewhere"), RunVariables());
  EXPECT_EQ(*Read({"--agent", "off"}, nullptr), (RunVariables{{"STEPWELL_AGENT", "off"}}));
  std::filesystem::rename(folder_ + "/bin/other", folder_ + "/bin/stepwell");
  EXPECT_EQ(*Read({}, nullptr), RunVariables()) << "the recorder finds it by itself";
}

TEST(RunTest, WrongUseStartsNothing) {
  // Where it were started after all, this would say so; another would take the place of the tests.
  const std::string nothing = "/no/such/program";
  const struct {
    Words words;
    std::string says;
  } rows[] = {
      {{}, "PROGRAM is missing"},
      {{"--offline", "--"}, "PROGRAM is missing"},
      {{"--trail", "x", nothing}, "there is no option '--trail'; did you mean '--trial'?"},
      {{"--trial", "--", nothing}, "Option ‘trial’ is missing an argument"},
      {{"--interval", "9ms", nothing}, "--interval is '9ms'; allowed"},
  };
  for (const auto& row : rows) {
    Words words = {"run"};
    words.insert(words.end(), row.words.begin(), row.words.end());
    const Outcome outcome = RunWords(words);
    EXPECT_EQ(outcome.exit, kExitUsage) << row.says;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err.rfind("stepwell run: " + row.says, 0), 0u) << outcome.err;
  }
}

TEST(RunTest, PrintShowsWhatAShellWouldRead) {
  setenv("STEPWELL_AGENT", "off", 1);
  EXPECT_EQ(RunWords({"run", "--print", "--no-hooks", "--trial", "it's mine", "--server",
                      "a.b:7817", "./train"})
                .out,
            "STEPWELL_HOOKS=0\nSTEPWELL_SERVER=a.b:7817\nSTEPWELL_TRIAL='it'\\''s mine'\n");
  const Outcome json = RunWords({"run", "--print", "--json", "--disabled", "./train", "--json"});
  EXPECT_EQ(nlohmann::json::parse(json.out),
            (nlohmann::json{{"program", {"./train", "--json"}},
                            {"variables", {{"STEPWELL_DISABLED", "1"}}}}));
  EXPECT_EQ(RunWords({"run", "--print", "--disabled", "./train"}).out, "STEPWELL_DISABLED=1\n");
  unsetenv("STEPWELL_AGENT");
}

}  // namespace
}  // namespace stepwell::cli
