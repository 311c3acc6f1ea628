#include "client/recorder/src/agent_launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "client/recorder/src/exit_wait.h"

namespace stepwell::recorder {
namespace {

using testing::ElementsAre;

using Programs = std::vector<std::string>;

TEST(AgentLaunchTest, AgentRule08_FindsTheProgram) {
  const struct {
    const char* name;
    std::string given;
    std::map<std::string, std::string> variables;
    std::string executable, library;
    Programs listed;
  } rows[] = {
      {"nothing known", "", {}, "", "", {}},
      {"an option", "/opt/agent", {{"STEPWELL_AGENT", "/b/agent"}}, "/x/train", "", {"/opt/agent"}},
      {"a variable",
       "",
       {{"STEPWELL_AGENT", "/b/agent"}, {"PATH", "/bin"}},
       "/x/train",
       "",
       {"/b/agent"}},
      {"relative", "build/stepwell", {}, "", "", {"/job/build/stepwell"}},
      {"a name", "mine", {{"PATH", "/a:/b"}}, "/x/train", "", {"/a/mine", "/b/mine"}},
      {"beside the program, the library, on PATH",
       "",
       {{"PATH", "/usr/bin:/bin"}},
       "/x/bin/train",
       "/y/lib/libstepwell_recorder.so",
       {"/x/bin/stepwell", "/y/lib/stepwell", "/y/lib/../bin/stepwell", "/usr/bin/stepwell",
        "/bin/stepwell"}},
      {"no working directory's", "", {{"PATH", ":.:bin:/bin:"}}, "", "", {"/bin/stepwell"}},
      {"empty ones", "", {{"STEPWELL_AGENT", ""}, {"PATH", ""}}, "/train", "", {}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    ProgramSurroundings around;
    around.environment = [&row](const char* name) {
      const auto found = row.variables.find(name);
      return found == row.variables.end() ? nullptr : found->second.c_str();
    };
    around.working_directory = "/job";
    around.executable = row.executable;
    around.library = row.library;
    EXPECT_EQ(ListPrograms(row.given, around), row.listed);
  }
}

TEST(AgentLaunchTest, AgentRule08_TheAgentGetsNothingThatSteersTheTrial) {
  const char* const variables[] = {"PATH=/bin",
                                   "LD_PRELOAD=/x.so",
                                   "LD_LIBRARY_PATH=/lib",
                                   "LD_AUDIT=/a.so",
                                   "PYTHONPATH=/p",
                                   "PYTHONHOME=/p",
                                   "STEPWELL_TOKEN=t",
                                   "STEPWELL_SERVER=host:1",
                                   "HOME=/h",
                                   nullptr};
  EXPECT_THAT(AgentVariables(variables, "/job"),
              ElementsAre("PATH=/bin", "LD_LIBRARY_PATH=/lib", "STEPWELL_TOKEN=t",
                          "STEPWELL_SERVER=host:1", "HOME=/h"));
  EXPECT_TRUE(AgentVariables(nullptr, "/job").empty());
}

// Its working directory is /.
TEST(AgentLaunchTest, TheAgentFindsTheFilesOfTlsThatTheTrialNames) {
  const char* const variables[] = {"STEPWELL_TLS_CA=certs/ca.pem",
                                   "STEPWELL_TLS_CERT=/c/client.pem",
                                   "STEPWELL_TLS_KEY=", "STEPWELL_TLS_CAT=certs/ca.pem", nullptr};
  EXPECT_THAT(AgentVariables(variables, "/job"),
              ElementsAre("STEPWELL_TLS_CA=/job/certs/ca.pem", "STEPWELL_TLS_CERT=/c/client.pem",
                          "STEPWELL_TLS_KEY=", "STEPWELL_TLS_CAT=certs/ca.pem"));
}

// The agent serves other trials, too: for it "offline" is no address.
TEST(AgentLaunchTest, OfflineIsTheTrialsAlone) {
  const char* const variables[] = {"STEPWELL_SERVER=offline", "STEPWELL_SERVER=offline:1", nullptr};
  EXPECT_THAT(AgentVariables(variables, "/job"), ElementsAre("STEPWELL_SERVER=offline:1"));
}

TEST(ExitWaitTest, IsReadInSeconds) {
  // `taken`: it is told that this is; empty = nothing is wrong.
  const struct {
    const char* text;
    std::int64_t ms;
    std::string taken;
  } rows[] = {{nullptr, 5000, ""}, {"", 5000, ""},         {"0", 0, ""},
              {"0.25", 250, ""},   {"60", 60'000, ""},     {"-1", 0, "0"},
              {"5s", 5000, "5"},   {"nan", 5000, "5"},     {"1e9", 3'600'000, "3600"},
              {"soon", 5000, "5"}, {"3600", 3'600'000, ""}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.text == nullptr ? "not set" : row.text);
    const Environment environment = [&row](const char*) { return row.text; };
    EXPECT_EQ(ReadExitWaitMs(environment), row.ms);
    EXPECT_EQ(ExitWaitRemark(environment),
              row.taken.empty() ? ""
                                : std::string("STEPWELL_EXIT_WAIT is '") + row.text +
                                      "': it must be a number of seconds, 0 ... 3600; " +
                                      row.taken + " is taken");
  }
}

}  // namespace
}  // namespace stepwell::recorder
