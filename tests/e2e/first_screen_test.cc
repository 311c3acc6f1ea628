// What `stepwell serve` prints when it is ready: each command on it works as it stands, once NAME and
// the program are put in, and nobody starts an agent.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tests/e2e/spine.h"
#include "tests/support/child_process.h"
#include "tests/support/places/places.h"

namespace stepwell::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class FirstScreenTest : public SpineTest {
 protected:
  // The lines of the screen, from its first to its last.
  std::vector<std::string> Screen() const {
    const std::string log = ReadText(scratch_ / "master.log");
    const auto begin = log.find("Stepwell ");
    const auto end = log.find("Stop with Ctrl-C.");
    EXPECT_NE(begin, std::string::npos) << log;
    EXPECT_NE(end, std::string::npos) << log;
    if (begin == std::string::npos || end == std::string::npos) return {};
    std::vector<std::string> lines;
    for (const absl::string_view line : absl::StrSplit(log.substr(begin, end - begin), '\n')) {
      // Lines of the log that came in between begin with the year.
      if (!absl::StartsWith(line, "20")) lines.emplace_back(line);
    }
    return lines;
  }

  // The one command that begins so, as a person would complete it. One that opens a quote goes on until
  // it is closed.
  std::string Command(const std::string& begin) const {
    std::string found;
    bool goes_on = false;
    for (const std::string& line : Screen()) {
      const auto text = std::string(absl::StripLeadingAsciiWhitespace(line));
      if (goes_on) {
        absl::StrAppend(&found, " ", text);
      } else if (absl::StartsWith(text, begin)) {
        EXPECT_EQ(found, "") << "two lines begin with " << begin;
        // Two spaces begin its explanation.
        found = text.substr(0, text.find("  "));
      } else {
        continue;
      }
      goes_on = std::count(found.begin(), found.end(), '"') % 2 == 1;
    }
    EXPECT_NE(found, "") << "no line begins with " << begin;
    found = absl::StrReplaceAll(
        found, {{"NAME", "screened"},
                {"./train", absl::StrCat(BuiltProgram("stepwell-demo"), " --seconds 1 --data ",
                                         scratch_ / "text")}});
    return absl::StartsWith(found, "stepwell ")
               ? absl::StrCat("exec ", BuiltProgram("stepwell"), found.substr(8))
               : found;
  }

  // Through a shell; how it ended, with what it said in said_.
  std::string Run(const std::string& command) {
    const std::string log = scratch_ / absl::StrCat("said-", ++count_);
    ChildProcess shell;
    shell.Start({"/bin/sh", "-c", command},
                {{"STEPWELL_AGENT", ""},  // as if it were not set
                 {"STEPWELL_AGENT_IDLE_EXIT", "1"},
                 {"STEPWELL_SYSTEM_ROOT", "/no/such/root"},
                 {"TMPDIR", scratch_ / "tmp"}},
                log);
    const std::string ending = shell.Wait(absl::Seconds(60));
    said_ = ReadText(log);
    return ending;
  }

  // Of the agent that the training started.
  std::string AgentLog() const {
    return ReadText(absl::StrCat(scratch_ / "tmp/stepwell-", geteuid(), "/f1/agent.log"));
  }

  // Each example of docs/schema.md, as one who may only read, of the trial that was recorded.
  void RunSchemaPage() {
    const std::string command = Command("psql ");
    const std::string psql = command.substr(0, command.find(" -c "));
    const std::vector<std::string> parts =
        absl::StrSplit(ReadText(SourcePlace("docs/schema.md")), "```sql\n");
    ASSERT_GT(parts.size(), 5U);
    for (std::size_t i = 1; i < parts.size(); ++i) {
      const std::string sql = absl::StrReplaceAll(parts[i].substr(0, parts[i].find("```")),
                                                  {{"NAME", "screened"},
                                                   {"$trial", "screened"},
                                                   {"$__timeFrom()", "now() - interval '1 hour'"},
                                                   {"$__timeTo()", "now()"},
                                                   {"$__interval_ms", "1000"}});
      SCOPED_TRACE(sql);
      std::ofstream(scratch_ / "example.sql") << "set role stepwell_read;\n" << sql;
      // What is merged comes a while after the trial's writers have closed.
      const std::string run =
          absl::StrCat(psql, " -X -q -v ON_ERROR_STOP=1 -f ", scratch_ / "example.sql");
      std::string ending;
      EXPECT_TRUE(Eventually(
          [&] {
            ending = Run(run);
            return ending != "exit 0" || !absl::StrContains(said_, "(0 rows)");
          },
          absl::Seconds(60)))
          << said_;
      EXPECT_EQ(ending, "exit 0") << said_;
    }
  }

  // As a cap writes it, which would take an age: none of a trial of a second is removed.
  void WriteGap() {
    std::ofstream(scratch_ / "gap.sql")
        << "insert into stepwell.gaps (trial_id, writer_no, cause, metric_group, sample_count, "
           "first_time_us, last_time_us, first_sequence, last_sequence, reason) "
           "select trial_id, 0, 11, 'cpu', 5, 1, 2, 0, 0, 'raw_age' from stepwell.trials "
           "where external_id = 'screened'";
    EXPECT_EQ(Run(absl::StrCat("psql '", master_->database_url(), "' -X -q -v ON_ERROR_STOP=1 -f ",
                               scratch_ / "gap.sql")),
              "exit 0")
        << said_;
  }

  int count_ = 0;
  std::string said_;
};

TEST_F(FirstScreenTest, ItsCommandsWork) {
  StartMaster();
  ASSERT_TRUE(
      Eventually([&] { return master_->CountInLog("Stop with Ctrl-C.") > 0; }, absl::Seconds(20)));
  EXPECT_LE(Screen().size(), 20U) << "one screen";
  for (const std::string& line : Screen()) {
    EXPECT_TRUE(line.size() <= 100 || absl::StrContains(line, "postgresql://")) << line;
  }

  const std::string page = absl::StrCat("  page      http://", master_->http_address(), "/");
  EXPECT_THAT(Screen(), ::testing::Contains(::testing::StartsWith(page)));
  EXPECT_THAT(master_->Get("/"), HasSubstr("<html"));
  std::filesystem::create_directory(scratch_ / "tmp");
  std::filesystem::create_directory(scratch_ / "text");
  std::ofstream(scratch_ / "text/corpus.txt") << [] {
    std::string text;
    for (int i = 0; i < 2000; ++i)
      absl::StrAppend(&text, "the ", i, "th line of a text to learn\n");
    return text;
  }();
  EXPECT_EQ(Run(Command("STEPWELL_SERVER=")), "exit 0") << said_;
  EXPECT_TRUE(Eventually(
      [&] {
        return Run(Command("stepwell report ")) == "exit 0" && absl::StrContains(said_, "step  ");
      },
      absl::Seconds(60)))
      << said_ << AgentLog();
  EXPECT_THAT(said_, HasSubstr("cpu_util")) << "the machine was sampled for the same trial";
  EXPECT_EQ(Run(Command("stepwell trials ")), "exit 0") << said_;
  EXPECT_THAT(said_, HasSubstr("screened"));
  EXPECT_TRUE(
      Eventually([&] { return absl::StrContains(AgentLog(), "agent_stopped"); }, absl::Seconds(30)))
      << "it ends by itself: " << AgentLog();

  ASSERT_TRUE(client_->Flush().ok());
  if (Run("command -v psql") != "exit 0") GTEST_SKIP() << "there is no psql on this machine";
  EXPECT_EQ(Run(Command("psql ")), "exit 0") << said_;
  // Of a second of steps; a busy machine takes few.
  EXPECT_THAT(said_, ::testing::ContainsRegex("\\([2-5] rows\\)"));
  WriteGap();
  RunSchemaPage();
}

}  // namespace
}  // namespace stepwell::testing
