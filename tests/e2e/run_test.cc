// `stepwell run`: real programs that take its place, and a training that is recorded by it.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "tests/e2e/started_agent.h"
#include "tests/support/pty_child.h"

namespace stepwell::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class RunTest : public ::testing::Test {
 protected:
  // `stepwell run WORDS`, or WORDS alone; how it ended, with what it said in said_.
  std::string Start(std::vector<std::string> words, bool is_run = true) {
    const std::string log = scratch_ / absl::StrCat("log-", ++count_);
    if (is_run) words.insert(words.begin(), {BuiltProgram("stepwell"), "run"});
    ChildProcess child;
    child.Start(words, environment_, log);
    started_ = child.pid();
    const std::string ending = child.Wait(absl::Seconds(30));
    said_ = ReadText(log);
    return ending;
  }
  std::string Shell(const std::string& script) { return Start({"/bin/sh", "-c", script}); }
  // What `words`, started by this shell prefix, say with and without `stepwell run` between.
  void ExpectTheSame(const std::string& prefix, const std::string& words) {
    const std::string between = absl::StrCat(BuiltProgram("stepwell"), " run -- ");
    ASSERT_EQ(Start({"/bin/sh", "-c", prefix + words}, /*is_run=*/false), "exit 0") << said_;
    const std::string alone = said_;
    ASSERT_EQ(Start({"/bin/sh", "-c", prefix + between + words}, /*is_run=*/false), "exit 0");
    EXPECT_EQ(said_, alone);
    EXPECT_NE(said_, "");
  }

  ScratchDirectory scratch_;
  std::map<std::string, std::string> environment_;
  std::string said_;
  pid_t started_ = 0;
  int count_ = 0;
};

TEST_F(RunTest, TheProgramIsTheProcessThatWasStarted) {
  EXPECT_EQ(Shell("echo $$; echo wrong >&2; exit 23"), "exit 23");
  EXPECT_EQ(said_, absl::StrCat(started_, "\nwrong\n"));
  EXPECT_EQ(Shell("kill -TERM $$"), "killed by signal 15");
  EXPECT_EQ(Shell("kill -KILL $$"), "killed by signal 9");
  EXPECT_EQ(Start({"sh", "-c", "exit 5"}), "exit 5") << "found on PATH";
  EXPECT_EQ(Start({"printf", "%s ", "--trial", "-h", "--", "a b", ""}), "exit 0");
  EXPECT_EQ(said_, "--trial -h -- a b  ") << "its own words reach it as they are";
}

TEST_F(RunTest, SignalsFilesAndTheFolderStayAsTheyWere) {
  ExpectTheSame("trap '' HUP; exec env --block-signal=USR1 --ignore-signal=PIPE ",
                "grep -E 'Sig(Blk|Ign|Cgt)|Threads|Seccomp:|NoNewPrivs' /proc/self/status");
  ExpectTheSame("exec 7</dev/null; exec env ", "readlink /proc/self/fd/0 /proc/self/fd/7");
  ExpectTheSame("exec 7</dev/null; exec env ", "ls /proc/self/fd");
  ExpectTheSame(absl::StrCat("cd ", scratch_.path(), "; umask 027; ulimit -n 77; exec env "),
                "sh -c 'pwd; umask; ulimit -n'");
}

TEST_F(RunTest, OptionsWinOverVariablesAndTheRestStays) {
  environment_ = {{"STEPWELL_TRIAL", "old"}, {"STEPWELL_PROJECT", "kept"}, {"OTHER", "x"}};
  EXPECT_EQ(Start({"--trial", "new", "--interval", "20ms", "sh", "-c",
                   "echo $STEPWELL_TRIAL $STEPWELL_PROJECT $STEPWELL_INTERVAL $OTHER "
                   "${STEPWELL_GROUPS-none}"}),
            "exit 0");
  EXPECT_EQ(said_, "new kept 20ms x none\n");
}

TEST_F(RunTest, WhatCannotBeStartedEndsAsInAShell) {
  const std::string script = scratch_ / "script";
  std::ofstream(script) << "#!/no/such/interpreter\n";
  const std::string text = scratch_ / "text";
  std::ofstream(text) << "no program\n";
  std::filesystem::permissions(script, std::filesystem::perms(0755));
  const struct {
    std::string program;
    std::string ending;
    std::string says;
  } rows[] = {
      {"no-such-program", "exit 127", "there is no program 'no-such-program' on PATH"},
      {"./no-such-program", "exit 127", "there is no program './no-such-program'\n"},
      {"", "exit 127", "there is no program ''"},
      {text, "exit 126", "text' cannot be executed: Permission denied"},
      {scratch_.path(), "exit 126", "cannot be executed: Permission denied"},
      {script, "exit 126", "script' cannot be executed: the interpreter that it names is missing"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(Start({"--", row.program}), row.ending) << row.says;
    EXPECT_THAT(said_, StartsWith("stepwell run: "));
    EXPECT_THAT(said_, HasSubstr(row.says));
  }
}

TEST_F(RunTest, TheTerminalIsThePrograms) {
  PtyChild child({BuiltProgram("stepwell"), "run", "--", "/bin/sh", "-c",
                  "test -t 0 && test -t 1 && stty size && read line && echo got-$line && exit 9"},
                 {{"TERM", "xterm"}, {"STEPWELL_AGENT", "off"}}, 70, 20);
  ASSERT_TRUE(child.WaitFor("20 70", absl::Seconds(20))) << child.shown();
  child.Type("words\n");
  EXPECT_TRUE(child.WaitFor("got-words", absl::Seconds(20))) << child.shown();
  EXPECT_EQ(child.Wait(absl::Seconds(20)), "exit 9");
  EXPECT_TRUE(child.IsRestored());
  // Ctrl-C reaches it: nobody stands between.
  PtyChild waiting({BuiltProgram("stepwell"), "run", "--", "/bin/sh", "-c", "echo up; exec cat"},
                   {{"TERM", "xterm"}, {"STEPWELL_AGENT", "off"}}, 70, 20);
  ASSERT_TRUE(waiting.WaitFor("up", absl::Seconds(20))) << waiting.shown();
  waiting.Type("\003");
  EXPECT_EQ(waiting.Wait(absl::Seconds(20)), "killed by signal 2");
}

using RunTrainingTest = StartedAgentTest;

TEST_F(RunTrainingTest, ATrainingThatItStartsIsRecordedWithItsMachine) {
  const std::string folder = scratch_ / "elsewhere";
  std::filesystem::create_directory(folder);
  // Beside this copy there is no agent, and none on PATH: it is the one of `stepwell run`.
  std::filesystem::copy_file(BuiltProgram("small_trial"), folder + "/small_trial");
  std::map<std::string, std::string> environment = Environment("not-this");
  environment.erase("STEPWELL_SERVER");
  EXPECT_EQ(Run({BuiltProgram("stepwell"), "run", "--trial", "started", "--server",
                 master_->grpc_address(), "--interval", "50ms", "--groups", "memory", "--",
                 folder + "/small_trial", "close", "200", "1.5"},
                environment),
            "exit 7");
  EXPECT_TRUE(IsStored("started", 200)) << AgentLog();
  EXPECT_TRUE(Stored("not-this").empty());
  EXPECT_TRUE(
      Eventually([this] { return MachineTimes("started").size() >= 10; }, absl::Seconds(20)))
      << MachineTimes("started").size() << AgentLog();
  EXPECT_TRUE(TimesOf("started", "cpu", "cpu_util_simple").empty()) << "not of that group";
}

}  // namespace
}  // namespace stepwell::testing
