// Command: one subcommand of `stepwell`, and the vocabulary that all share: exit codes and where
// text goes. Commands return statuses; main turns them into exit codes and one line on stderr.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace stepwell::cli {

// From sysexits(3), so that scripts can tell them apart.
enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,        // not found, or the master refused
  kExitUsage = 64,        // the command line is wrong
  kExitNoInput = 66,      // what should be read is not there
  kExitUnavailable = 69,  // the master cannot be reached
  kExitAgain = 75,        // not now: run it again
};

struct Streams {
  std::ostream& out;
  std::ostream& err;
};

// `args` are those after the subcommand's name.
using RunCommand = int (*)(const std::vector<std::string>& args, Streams streams);

struct Command {
  const char* name;     // "report", "admin flush"
  const char* summary;  // one line for the list
  RunCommand run;
  const char* arguments = "";  // of an example: " TRIAL off"
};

int RunTrials(const std::vector<std::string>& args, Streams streams);
int RunSeries(const std::vector<std::string>& args, Streams streams);
int RunRead(const std::vector<std::string>& args, Streams streams);
int RunReport(const std::vector<std::string>& args, Streams streams);
int RunCompare(const std::vector<std::string>& args, Streams streams);
int RunExport(const std::vector<std::string>& args, Streams streams);
int RunTop(const std::vector<std::string>& args, Streams streams);
int RunCapsGet(const std::vector<std::string>& args, Streams streams);
int RunCapsSet(const std::vector<std::string>& args, Streams streams);
int RunCapsPreview(const std::vector<std::string>& args, Streams streams);
int RunCapsSweep(const std::vector<std::string>& args, Streams streams);
int RunAdminFlush(const std::vector<std::string>& args, Streams streams);
int RunAdminProfiling(const std::vector<std::string>& args, Streams streams);
int RunAdminStatus(const std::vector<std::string>& args, Streams streams);
int RunAdminArchive(const std::vector<std::string>& args, Streams streams);
int RunAdminUnarchive(const std::vector<std::string>& args, Streams streams);
int RunAdminDelete(const std::vector<std::string>& args, Streams streams);
int RunTraceMerge(const std::vector<std::string>& args, Streams streams);
int RunTraceReport(const std::vector<std::string>& args, Streams streams);
int RunTraceList(const std::vector<std::string>& args, Streams streams);
int RunTraceGet(const std::vector<std::string>& args, Streams streams);
int RunTraceImport(const std::vector<std::string>& args, Streams streams);
int RunTraceOpen(const std::vector<std::string>& args, Streams streams);
int RunTraceDelete(const std::vector<std::string>& args, Streams streams);
int RunCapture(const std::vector<std::string>& args, Streams streams);
int RunTokenCreate(const std::vector<std::string>& args, Streams streams);
int RunTokenFetch(const std::vector<std::string>& args, Streams streams);
int RunTokenList(const std::vector<std::string>& args, Streams streams);
int RunTokenRevoke(const std::vector<std::string>& args, Streams streams);
int RunTlsInit(const std::vector<std::string>& args, Streams streams);
int RunVersion(const std::vector<std::string>& args, Streams streams);

// Every subcommand that talks to a master, in the order of the list.
const std::vector<Command>& Commands();

// The text of `stepwell --help`.
std::string OverviewText();

// Finds and runs the subcommand named by the first words of `args`; unknown ones and a missing
// one are usage errors that name what exists.
int RunCommandLine(const std::vector<std::string>& args, Streams streams);

}  // namespace stepwell::cli
