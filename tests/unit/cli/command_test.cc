#include "client/cli/command.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "client/cli/master_client.h"
#include "tests/unit/cli/golden.h"
#include "tests/unit/cli/outcome.h"

namespace stepwell::cli {
namespace {

TEST(CommandTest, HelpOfEveryCommand) {
  unsetenv("STEPWELL_SERVER");
  std::string text = RunWords({"--help"}).out;
  for (const Command& command : Commands()) {
    std::vector<std::string> args;
    std::istringstream words(command.name);
    for (std::string word; words >> word;) args.push_back(word);
    args.push_back("--help");
    const Outcome outcome = RunWords(args);
    EXPECT_EQ(outcome.exit, kExitOk);
    EXPECT_NE(outcome.out.find("Example"), std::string::npos) << command.name;
    text += "---- " + std::string(command.name) + "\n" + outcome.out;
  }
  text += "---- run\n" + RunWords({"run", "--help"}).out;
  text += "---- admin\n" + RunWords({"admin", "--help"}).out;
  ExpectGolden("help.txt", text);
}

TEST(CommandTest, WrongUseSaysWhatIsAllowed) {
  struct Row {
    std::vector<std::string> args;
    std::string says;
  };
  const Row rows[] = {
      {{}, "Usage: stepwell COMMAND"},
      {{"frobnicate"},
       "no command 'frobnicate'; there are: run, serve, agent, agent status, upload, trials"},
      {{"reprot"}, "no command 'reprot'; did you mean 'report'? there are: run, serve"},
      {{"trails"}, "no command 'trails'; did you mean 'trials'? there are: run, serve"},
      {{"admin"}, "Usage: stepwell admin COMMAND"},
      {{"admin", "flus"}, "no command 'admin flus'; did you mean 'admin flush'? there are"},
      {{"admin", "explode"}, "no command 'admin explode'; there are"},
      {{"report"}, "stepwell report: TRIAL is missing\nTry 'stepwell report --help'."},
      {{"report", "a", "b"}, "unexpected argument 'b'"},
      {{"report", "id:x"}, "TRIAL is 'id:x'; allowed: NAME, or id: and a number"},
      {{"report", "id:0"}, "TRIAL is 'id:0'"},
      {{"report", "id:7", "--project", "p"}, "--project goes with a NAME"},
      {{"report", "a", "--rank", "two"}, "--rank is 'two'; allowed: 0 ... 2147483647"},
      {{"trials", "--limit", "0"}, "--limit is '0'; allowed: 1 ... 100000"},
      {{"trials", "--state", "dead"}, "--state is 'dead'; allowed: running, completed"},
      {{"trials", "--nonsense"}, "stepwell trials: there is no option '--nonsense'\n"},
      {{"trials", "--limits", "3"}, "there is no option '--limits'; did you mean '--limit'?"},
      {{"trials", "--sever=x:1"}, "there is no option '--sever'; did you mean '--server'?"},
      {{"trials", "-x"}, "there is no option '-x'"},
      {{"trials", "--server", "lab"}, "--server is 'lab'; allowed: HOST:PORT, for example 127.0"},
      {{"trials", "--server", "lab:0"}, "--server is 'lab:0'; allowed: HOST:PORT"},
      {{"trials", "--server", "http://lab:1"}, "--server is 'http://lab:1'; allowed: HOST:PORT"},
      {{"trials", "--server", "lab:1", "--tls-ca", "/none"},
       "--tls-ca (STEPWELL_TLS_CA) /none: No such file"},
      {{"series", "a", "--label", "x"}, "--label is 'x'; allowed: NAME=VALUE"},
      {{"read", "a", "--from", "soon"}, "--from is 'soon'; allowed: a time such as"},
      {{"read", "a", "--to", "1970-01-01"},
       "--to is '1970-01-01', the time 0, which stands for no bound; allowed: a microsecond before "
       "or after it, or no --to"},
      {{"read", "a", "--from", "1970-01-01T01:00:00+01:00"},
       "--from is '1970-01-01T01:00:00+01:00', the time 0, which stands for no bound"},
      {{"export", "a", "--to", "1970-01-01"}, "--to is '1970-01-01', the time 0"},
      {{"read", "a", "--follow", "--from", "1m"}, "--follow takes --lookback TIME"},
      {{"read", "a", "--follow", "--lookback", "2m"}, "--lookback is '2m'; allowed: "},
      {{"read", "a", "--follow", "--limit", "x"}, "--limit is 'x'; allowed: "},
      {{"read", "a", "--lookback", "1s"}, "--lookback goes with --follow"},
      {{"compare", "a"},
       "stepwell compare: another TRIAL is missing: 2 are wanted, and only 'a' is given"},
      {{"compare", "a", "b", "id:x"}, "TRIAL is 'id:x'; allowed: NAME, or id: and a number"},
      {{"compare", "a", "b", "--by", "step"}, "--by is 'step'; allowed: batch (the default), time"},
      {{"compare", "a", "b", "--from", "1m"}, "--from is '1m'; allowed: 0 ... 2147483647"},
      {{"compare", "a", "b", "--by", "time", "--to", "9"}, "--to is '9'; allowed: a duration"},
      {{"compare", "a", "b", "--from", "9", "--to", "8"}, "--to is '8'; allowed: --from ('9')"},
      {{"compare", "a", "b", "--limit", "-1"}, "--limit is '-1'; allowed: 0 ... 2147483647"},
      {{"export", "a", "--format", "xml"}, "--format is 'xml'; allowed: csv, jsonl"},
      {{"export", "a", "--format", "csv", "--json"}, "--json is --format jsonl"},
      {{"export", "a", "--output", ""}, "--output is ''; allowed: the name of a file"},
      {{"export", "a", "--to", "soon"}, "--to is 'soon'; allowed: a time such as"},
  };
  for (const Row& row : rows) {
    const Outcome outcome = RunWords(row.args);
    EXPECT_EQ(outcome.exit, kExitUsage) << row.says;
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find(row.says), std::string::npos) << outcome.err;
  }
}

TEST(CommandTest, VersionIsOneLine) {
  EXPECT_EQ(RunWords({"version"}).out.substr(0, 9), "stepwell ");
  EXPECT_EQ(RunWords({"version", "--json"}).out.substr(0, 12), "{\"version\":\"");
  EXPECT_EQ(RunWords({"--version"}).exit, kExitOk);
}

TEST(TrialRefTest, NamesAndNumbers) {
  EXPECT_EQ(ParseTrialRef("id:7", "")->trial_id(), 7);
  EXPECT_EQ(ParseTrialRef("7", "vision")->external_id(), "7");
  EXPECT_EQ(ParseTrialRef("7", "vision")->project(), "vision");
  EXPECT_FALSE(ParseTrialRef("", "").ok());
}

}  // namespace
}  // namespace stepwell::cli
