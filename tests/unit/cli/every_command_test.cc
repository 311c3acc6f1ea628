// What all subcommands promise (docs/cli.md): help with examples, --json, refusals of wrong use, exit
// codes. Rows are made from the list of commands, so that a new one is held to them too.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/command.h"
#include "nlohmann/json.hpp"
#include "tests/unit/cli/outcome.h"
#include "tests/unit/cli/small_master.h"

namespace stepwell::cli {
namespace {

using Words = std::vector<std::string>;

bool TakesTrial(const std::string& name) {
  return name == "series" || name == "read" || name == "report" || name == "admin profiling" ||
         name == "compare" || name == "export" || name == "admin archive" ||
         name == "admin unarchive" || name == "admin delete" || name == "trace list" ||
         name == "trace get" || name == "trace import" || name == "trace delete" ||
         name == "trace open" || name == "capture";
}
// One after the other.
bool TakesMore(const std::string& name) {
  return name == "compare" || name == "trace merge" || name == "trace report" ||
         name == "trace get" || name == "trace import" || name == "trace open";
}
// Samples are printed an object per line, so that they can be read while they come.
bool IsByLine(const std::string& name) { return name == "read" || name == "export"; }
// Given or not.
bool MayTakeTrial(const std::string& name) { return TakesTrial(name) || name == "top"; }
// A file, and no master.
bool ReadsTrace(const std::string& name) { return name == "trace merge" || name == "trace report"; }
bool AsksMaster(const std::string& name) {
  return name != "version" && name != "tls init" && !ReadsTrace(name);
}

// Where commands leave what they write; gone with the process.
std::string Left(const std::string& name) {
  struct Folder {
    std::string path = [] {
      std::string made = ::testing::TempDir() + "every-command-XXXXXX";
      return std::string(mkdtemp(made.data()));
    }();
    ~Folder() { std::filesystem::remove_all(path); }
  };
  static const Folder folder;
  return folder.path + "/" + name;
}

// A trace of one rank and operator, made once.
const std::string& TraceFile() {
  static const std::string file = [] {
    const std::string path = Left("rank0.json");
    std::ofstream(path)
        << R"({"traceEvents":[{"ph":"X","cat":"cpu_op","name":"op","ts":1,"dur":2,"pid":1,"tid":1}]})";
    return path;
  }();
  return file;
}

Words WordsOf(const Command& command) { return absl::StrSplit(command.name, ' '); }

// A right use of `command`.
Words GoodUse(const Command& command) {
  Words words = WordsOf(command);
  if (MayTakeTrial(command.name)) words.emplace_back("my-run");
  if (std::string(command.name) == "admin profiling") words.emplace_back("off");
  if (std::string(command.name) == "admin delete") words.emplace_back("--yes");
  if (std::string(command.name) == "caps set") words.insert(words.end(), {"--raw-age", "30d"});
  if (std::string(command.name) == "token create") {
    words.insert(words.end(), {"ci", "--grant", "read:vision"});
  }
  if (std::string(command.name) == "token fetch") {
    words.insert(words.end(), {"--trial", "vision/run-7"});
  }
  if (std::string(command.name) == "token revoke") words.emplace_back("5f0c21d3a9be");
  if (std::string(command.name) == "compare") words.emplace_back("next-run");
  if (ReadsTrace(command.name)) words.push_back(TraceFile());
  if (std::string(command.name) == "trace import") words.push_back(TraceFile());
  if (std::string(command.name) == "trace delete") words.emplace_back("1");
  if (std::string(command.name) == "tls init") {
    const std::string directory = Left("tls");
    std::filesystem::remove_all(directory);
    words.push_back(directory);
  }
  if (std::string(command.name) == "trace get") {
    words.insert(words.end(), {"--directory", Left("traces")});
  }
  return words;
}

Words With(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

class EveryCommandTest : public ::testing::Test {
 protected:
  EveryCommandTest() { unsetenv("STEPWELL_SERVER"); }

  Outcome Ask(const Words& words) { return RunWords(With(words, {"--server", master_.address()})); }

  SmallMaster master_;
};

TEST_F(EveryCommandTest, HelpsOnStdoutWithExamples) {
  for (const Command& command : Commands()) {
    for (const char* help : {"--help", "-h"}) {
      const Outcome outcome = RunWords(With(WordsOf(command), {help}));
      EXPECT_EQ(outcome.exit, kExitOk) << command.name;
      EXPECT_EQ(outcome.err, "") << command.name;
      EXPECT_NE(outcome.out.find(absl::StrCat("stepwell ", command.name)), std::string::npos);
      EXPECT_NE(outcome.out.find("\nExample"), std::string::npos) << outcome.out;
      EXPECT_NE(outcome.out.find("--json"), std::string::npos) << outcome.out;
    }
  }
}

TEST_F(EveryCommandTest, RefusesWhatItDoesNotKnow) {
  for (const Command& command : Commands()) {
    for (const auto& [more, says] :
         {std::pair<Words, std::string>{{"--nonsense"}, "there is no option '--nonsense'"},
          {{"--nonsense=1"}, "there is no option '--nonsense'"},
          {{"--server"}, "Option ‘server’ is missing an argument"},
          {{"extra"}, "unexpected argument 'extra'"}}) {
      if (more[0] == "extra" && TakesMore(command.name)) continue;
      if (more[0] == "--server" && !AsksMaster(command.name)) continue;
      const Outcome outcome = RunWords(With(GoodUse(command), more));
      SCOPED_TRACE(absl::StrCat(command.name, " ", absl::StrJoin(more, " ")));
      EXPECT_EQ(outcome.exit, kExitUsage);
      EXPECT_EQ(outcome.out, "");
      EXPECT_EQ(outcome.err, absl::StrCat("stepwell ", command.name, ": ", says, "\nTry 'stepwell ",
                                          command.name, " --help'.\n"));
    }
    if (!TakesTrial(command.name)) continue;
    const Outcome outcome = RunWords(WordsOf(command));
    EXPECT_EQ(outcome.exit, kExitUsage) << command.name;
    EXPECT_NE(outcome.err.find("TRIAL is missing"), std::string::npos) << outcome.err;
  }
}

TEST_F(EveryCommandTest, SaysWhenNoMasterAnswers) {
  for (const Command& command : Commands()) {
    if (!AsksMaster(command.name)) continue;
    // Port 1 is never a master.
    const Outcome outcome = RunWords(With(GoodUse(command), {"--server", "127.0.0.1:1"}));
    EXPECT_EQ(outcome.exit, kExitUnavailable) << command.name;
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find("no master answers at 127.0.0.1:1"), std::string::npos);
    EXPECT_NE(outcome.err.find("Start one with 'stepwell serve'"), std::string::npos);
  }
}

TEST_F(EveryCommandTest, AnswersInTextAndInJson) {
  for (const Command& command : Commands()) {
    SCOPED_TRACE(command.name);
    // It waits for a browser.
    if (std::string(command.name) == "trace open") continue;
    const auto ask = [&](const Words& words) {
      return AsksMaster(command.name) ? Ask(words) : RunWords(words);
    };
    const Outcome text = ask(GoodUse(command));
    EXPECT_EQ(text.exit, kExitOk) << text.err;
    EXPECT_FALSE(text.out.empty());
    EXPECT_EQ(text.out.back(), '\n');
    const Outcome json = ask(With(GoodUse(command), {"--json"}));
    EXPECT_EQ(json.exit, kExitOk) << json.err;
    const bool is_by_line = IsByLine(command.name);
    std::istringstream lines(json.out);
    for (std::string line; is_by_line && std::getline(lines, line);) {
      EXPECT_TRUE(nlohmann::json::accept(line)) << line;
    }
    if (!is_by_line) {
      EXPECT_TRUE(nlohmann::json::accept(json.out)) << json.out;
    }
  }
}

TEST_F(EveryCommandTest, NamesWhatThereIsWhereATrialIsUnknown) {
  for (const Words& words : {Words{"series", "your-run"},
                             {"read", "your-run"},
                             {"report", "your-run"},
                             {"report", "your-run", "--json"},
                             {"export", "your-run"},
                             {"compare", "your-run", "my-run"},
                             {"compare", "my-run", "your-run", "next-run"},
                             {"top", "your-run", "--once"},
                             {"admin", "profiling", "your-run", "off"},
                             {"admin", "archive", "your-run"},
                             {"admin", "delete", "your-run", "--yes"},
                             {"capture", "your-run"},
                             {"trace", "list", "your-run"},
                             {"trace", "get", "your-run"},
                             {"trace", "open", "your-run"},
                             {"trace", "import", "your-run", TraceFile()},
                             {"trace", "delete", "your-run", "1"},
                             {"caps", "get", "--trial", "your-run"},
                             {"caps", "set", "--trial", "your-run", "--bytes", "1GiB"},
                             {"admin", "flush", "--trial", "your-run"}}) {
    const Outcome outcome = Ask(words);
    EXPECT_EQ(outcome.exit, kExitFailed);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err,
              "stepwell: there is no trial 'your-run'\n"
              "The newest trials: my-run. 'stepwell trials' lists all.\n");
  }
  // The trial is known, its attempt is not.
  EXPECT_EQ(Ask({"report", "my-run", "--attempt", "2"}).err,
            "stepwell: trial 7 has no attempt 2\n");
}

TEST_F(EveryCommandTest, ATokensTextAloneGoesToStandardOutput) {
  const Outcome made =
      Ask({"token", "create", "ci", "--grant", "read:vision", "--grant", "write:speech"});
  EXPECT_EQ(made.out, "stepwell_5f0c21d3a9be_0123\n");
  EXPECT_EQ(made.err,
            "Token 5f0c21d3a9be (read:vision, write:speech), expires never. It is told this once: "
            "keep it.\n");
  const Outcome none = Ask({"token", "create", "ci"});
  EXPECT_EQ(none.exit, kExitUsage);
  EXPECT_NE(none.err.find("--grant is missing; allowed: read:PROJECT"), std::string::npos);
  const Outcome listed = Ask({"token", "list"});
  EXPECT_NE(listed.out.find("5f0c21d3a9be  ci    read:vision"), std::string::npos) << listed.out;
  EXPECT_EQ(Ask({"token", "revoke", "5f0c21d3a9be"}).out, "ci (5f0c21d3a9be) is revoked.\n");
}

TEST_F(EveryCommandTest, ReadSaysWhatThereIsWhereNothingMatches) {
  struct Row {
    Words selection;
    std::string says;
  };
  const Row rows[] = {
      {{"--group", "gpu"},
       "no series match --group gpu. Metric groups of the trial: cpu (1 series), training (2 "
       "series).\n'stepwell series my-run' lists all.\n"},
      {{"--name", "los"},
       "no series match --name los. Near it: loss.\n'stepwell series my-run' lists all.\n"},
      {{"--name", "accuracy"},
       "no series match --name accuracy. Metric groups of the trial: cpu (1 series), training (2 "
       "series).\n'stepwell series my-run' lists all.\n"},
      {{"--group", "training", "--name", "accuracy"},
       "no series match --group training --name accuracy. Names in group training: loss, "
       "samples_per_second.\n'stepwell series my-run' lists all.\n"},
      {{"--name", "loss", "--label", "rank=3"},
       "no series match --name loss --label rank=3. Labels there are: rank=0.\n"
       "'stepwell series my-run' lists all.\n"},
      {{"--name", "loss", "--from", "2026-01-01T00:00:00Z"},
       "no samples match: 1 series does, but holds none in the time range asked for.\n"
       "'stepwell trials' tells the span of each trial.\n"},
  };
  for (const Row& row : rows) {
    const Outcome outcome = Ask(With({"read", "my-run"}, row.selection));
    EXPECT_EQ(outcome.exit, kExitFailed);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, "stepwell: " + row.says);
    EXPECT_EQ(Ask(With({"read", "my-run", "--json"}, row.selection)).exit, kExitFailed);
  }
  // A list may be empty: no failure, and stderr says the same.
  const Outcome list = Ask({"series", "my-run", "--group", "gpu", "--json"});
  EXPECT_EQ(list.exit, kExitOk);
  EXPECT_EQ(nlohmann::json::parse(list.out), nlohmann::json::array());
  EXPECT_EQ(list.err, "stepwell: " + rows[0].says);
}

TEST_F(EveryCommandTest, ProfilingSaysWhatHoldsNowAndRefusesWrongWords) {
  struct Row {
    Words more;
    int exit;
    std::string says;
  };
  const Row rows[] = {
      {{"off"}, kExitOk, "my-run: recording is off. 2 open writers were told.\n"},
      {{"on"}, kExitOk, "my-run: recording is on as it chose itself. 2 open writers were told.\n"},
      {{"on", "--interval", "100ms", "--groups", "gpu, cpu"},
       kExitOk,
       "my-run: recording is on, every 100 ms, groups gpu, cpu. 2 open writers were told.\n"},
      {{}, kExitUsage, "on|off is missing"},
      {{"maybe"}, kExitUsage, "'maybe' is neither on nor off"},
      {{"on", "--interval", "9ms"},
       kExitUsage,
       "--interval is '9ms'; allowed: a duration such as 250ms, 10ms ... 1h"},
      {{"on", "--interval", "61m"},
       kExitUsage,
       "--interval is '61m'; allowed: a duration such as 250ms, 10ms ... 1h"},
      {{"on", "--interval", "soon"},
       kExitUsage,
       "--interval is 'soon'; allowed: a duration such as 250ms, 10ms ... 1h"},
      {{"on", "--groups", " ,"},
       kExitUsage,
       "--groups is empty; allowed: names with commas between"},
      {{"off", "--interval", "1s"}, kExitUsage, "--interval and --groups go with 'on'"},
      {{"off", "--groups", "cpu"}, kExitUsage, "--interval and --groups go with 'on'"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.says);
    const Outcome outcome = Ask(With({"admin", "profiling", "my-run"}, row.more));
    EXPECT_EQ(outcome.exit, row.exit);
    if (row.exit == kExitOk) {
      EXPECT_EQ(outcome.out, row.says);
    } else {
      EXPECT_EQ(outcome.err, absl::StrCat("stepwell admin profiling: ", row.says,
                                          "\nTry 'stepwell admin profiling --help'.\n"));
    }
  }
  const Outcome json = Ask({"admin", "profiling", "my-run", "on", "--interval", "1s", "--json"});
  const auto answer = nlohmann::json::parse(json.out);
  EXPECT_EQ(answer["writers_told"], 2);
  EXPECT_EQ(answer["profiling"]["interval_us"], 1'000'000);
}

TEST_F(EveryCommandTest, ProfilingTellsGroupsThatNobodySamples) {
  const Outcome known = Ask({"admin", "profiling", "my-run", "on", "--groups", "gpu,training"});
  EXPECT_EQ(known.exit, kExitOk);
  EXPECT_EQ(known.err, "") << "the trial records that group itself";
  const Outcome slip = Ask({"admin", "profiling", "my-run", "on", "--groups", "cpu,gpux"});
  EXPECT_EQ(slip.exit, kExitOk) << "it may come";
  EXPECT_EQ(
      slip.err,
      "stepwell: no sensor has the group 'gpux', and the trial has recorded none of that name; "
      "near it: gpu. Sensors' groups: cpu, disk, gpu, memory, network.\n");
}

TEST_F(EveryCommandTest, SaysWhatIsNearAndWhatIsAskedForInVain) {
  const struct {
    Words words;
    int exit;
    const char* says;
  } rows[] = {
      {{"read", "my-run", "--name", "lss"},
       kExitFailed,
       "no series match --name lss. Near it: loss."},
      {{"read", "my-run", "--from", "10m", "--to", "20m"},
       kExitUsage,
       "--from is '10m', --to is '20m'; allowed: --from before --to"},
      {{"read", "my-run", "--limit", "1"},
       kExitOk,
       "stopped after 1 sample, all of the first series that matches; --group, --name and --label "
       "choose, --limit 0 prints all\n"},
      {{"report", "my-run", "--rank", "9"},
       kExitFailed,
       "my-run has no timings of rank 9 in attempt 0; it has none of any rank"},
      {{"compare", "first"},
       kExitUsage,
       "another TRIAL is missing: 2 are wanted, and only 'first' is given"},
      {{"compare"}, kExitUsage, "TRIAL is missing: 2 are wanted, and none is given"},
      {{"report"}, kExitUsage, "stepwell report: TRIAL is missing\n"},
      {{"report", "my-run", "--rank", "9", "--json"}, kExitFailed, "has no timings of rank 9"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(absl::StrJoin(row.words, " "));
    const Outcome outcome = Ask(row.words);
    EXPECT_EQ(outcome.exit, row.exit);
    EXPECT_NE(outcome.err.find(row.says), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(Ask({"trials", "--contains", "nope"}).out, "No trials match --contains nope.\n");
}

TEST_F(EveryCommandTest, AReportOfAllTracesGoesOnBehindOneThatIsNone) {
  const Outcome all = Ask({"trace", "report", "--trial", "next-run"});
  EXPECT_EQ(all.exit, kExitOk) << all.err;
  EXPECT_NE(all.out.find("1 rank\n"), std::string::npos) << all.out;
  EXPECT_NE(all.err.find("trace 2 (ep0-ba7-rank3.json): this is no Chrome trace"),
            std::string::npos)
      << all.err;
  // Who names it wants it.
  EXPECT_EQ(Ask({"trace", "report", "--trial", "next-run", "2", "3"}).exit, kExitFailed);
}

TEST_F(EveryCommandTest, BytesOfATraceThatAreNotThoseUploadedAreNone) {
  const char* says =
      "trace 4 (ep0-ba7-rank3.json): trace 4: these are not the bytes that were uploaded";
  const Outcome named = Ask({"trace", "report", "--trial", "next-run", "3", "4"});
  EXPECT_EQ(named.exit, kExitFailed);
  EXPECT_NE(named.err.find(says), std::string::npos) << named.err;
  const Outcome all = Ask({"trace", "report", "--trial", "next-run"});
  EXPECT_EQ(all.exit, kExitOk);
  EXPECT_NE(all.err.find(says), std::string::npos) << all.err;
}

TEST_F(EveryCommandTest, AnArchiveOfAllTracesLeavesOutWhatCannotBePlaced) {
  const std::string archive = Left("left-out.tar");
  const Outcome all = Ask({"trace", "merge", "--trial", "next-run", "--output", archive});
  EXPECT_EQ(all.exit, kExitOk) << all.err;
  for (const char* says : {"trace 1 (ep0-ba7-rank3.json): it has no event with a time",
                           "trace 2 (ep0-ba7-rank3.json): this is no Chrome trace",
                           "trace 4 (ep0-ba7-rank3.json): trace 4: these are not the bytes",
                           "; left out\n", "1 trace and their places are in"}) {
    EXPECT_NE(all.err.find(says), std::string::npos) << says << "\n" << all.err;
  }
  std::filesystem::remove(archive);
  for (const char* trace_no : {"1", "2", "4"}) {
    const Outcome named =
        Ask({"trace", "merge", "--trial", "next-run", "3", trace_no, "--output", archive});
    EXPECT_EQ(named.exit, kExitFailed) << trace_no;
    EXPECT_NE(named.err.find(std::string("trace ") + trace_no), std::string::npos) << named.err;
    EXPECT_FALSE(std::filesystem::exists(archive));
  }
  const Outcome none = Ask({"trace", "merge", "--trial", "my-run", "--output", archive});
  EXPECT_EQ(none.exit, kExitFailed);
  EXPECT_NE(none.err.find("it has no event with a time"), std::string::npos) << none.err;
}

TEST_F(EveryCommandTest, TrialsAreLookedForBehindAnEmptyPage) {
  const Outcome outcome = Ask({"trials", "--contains", "my-", "--json"});
  EXPECT_EQ(outcome.exit, kExitOk);
  EXPECT_NE(outcome.out.find("my-run"), std::string::npos) << outcome.out;
}

TEST_F(EveryCommandTest, ReportIsAsciiWhereTheLocaleIs) {
  setenv("LC_ALL", "C", 1);
  const std::string plain = Ask({"report", "my-run"}).out;
  setenv("LC_ALL", "C.UTF-8", 1);
  const std::string wide = Ask({"report", "my-run"}).out;
  unsetenv("LC_ALL");
  const auto is_ascii = [](const std::string& text) {
    return std::all_of(text.begin(), text.end(),
                       [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  };
  EXPECT_TRUE(is_ascii(plain)) << plain;
  EXPECT_FALSE(is_ascii(wide)) << wide;
}

TEST_F(EveryCommandTest, ExportSaysWhatThereIsWhereNothingMatchesAndLeavesNoFile) {
  const std::string file = Left("nothing.csv");
  const Outcome outcome = Ask({"export", "my-run", "--group", "gpu", "--output", file});
  EXPECT_EQ(outcome.exit, kExitFailed);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("no series match --group gpu."), std::string::npos) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(file));

  const Outcome all = Ask({"export", "my-run", "--output", file});
  EXPECT_EQ(all.exit, kExitOk) << all.err;
  EXPECT_EQ(all.out, "");
  EXPECT_EQ(all.err, "2 samples are in " + file + "\n");
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  EXPECT_EQ(text.str(), Ask({"export", "my-run"}).out);
  std::filesystem::remove(file);
}

TEST_F(EveryCommandTest, CompareSaysWhereNothingMatches) {
  const Outcome outcome = Ask({"compare", "my-run", "next-run", "--name", "los"});
  EXPECT_EQ(outcome.exit, kExitFailed);
  EXPECT_NE(outcome.out.find("A  my-run"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.err.find("no samples with a batch match; --by time"), std::string::npos);
}

TEST_F(EveryCommandTest, AFamilyAloneShowsItsCommands) {
  const Outcome help = RunWords({"admin", "--help"});
  EXPECT_EQ(help.exit, kExitOk);
  EXPECT_EQ(help.err, "");
  EXPECT_NE(help.out.find("admin flush"), std::string::npos);
  EXPECT_NE(help.out.find("Examples:\n  stepwell admin flush\n"), std::string::npos);
  const Outcome alone = RunWords({"admin"});
  EXPECT_EQ(alone.exit, kExitUsage);
  EXPECT_EQ(alone.out, "");
  EXPECT_EQ(alone.err, help.out);
}

}  // namespace
}  // namespace stepwell::cli
