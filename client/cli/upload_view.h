// UploadView: how an upload ended, in a sentence or in JSON, and its exit code. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "client/cli/command.h"

namespace stepwell::cli {

// What went out of a spool, and what did not.
struct UploadOutcome {
  std::string root;
  std::string server;
  // Writers that are wholly stored now and were not before; frames and samples likewise.
  std::uint64_t writers_stored = 0;
  std::uint64_t frames_stored = 0;
  std::uint64_t samples_stored = 0;
  // Not stored: the master would not have them, and why, as it said of one.
  std::uint64_t writers_refused = 0;
  std::string refusal;
  // Not stored: no answer in time, or stopped.
  std::uint64_t writers_left = 0;
  std::uint64_t frames_left = 0;
  // Traces that the master has now; those whose files were not there any more; those that nobody takes, and why not the last.
  std::uint64_t traces_sent = 0;
  std::uint64_t traces_gone = 0;
  std::uint64_t traces_given_up = 0;
  std::string trace_trouble;
  // Those whose notes stay: for files that lie outside of the spool, where those are left alone; in directories that are not
  // there; that the master did not take, and why not one of them; for any other reason, which is time.
  std::uint64_t traces_outside = 0;
  std::uint64_t traces_absent = 0;
  std::uint64_t traces_refused = 0;
  std::string trace_refusal;
  std::uint64_t traces_left = 0;
  // Directories that are no writer, for one of them why.
  std::uint64_t unreadable = 0;
  std::string trouble;
  bool was_stopped = false;
};

// kExitAgain where the same command may send more. Else kExitFailed where something was refused, given up, unreadable or lies
// outside, for which somebody has to do something else. Else 0.
int ExitOf(const UploadOutcome& outcome);
// Lines for people; what went well first.
std::string UploadText(const UploadOutcome& outcome);
std::string UploadJson(const UploadOutcome& outcome);

}  // namespace stepwell::cli
