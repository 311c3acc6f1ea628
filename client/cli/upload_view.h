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
  // Traces whose notes are gone, for they were uploaded or refused; those whose notes stay.
  std::uint64_t traces_sent = 0;
  std::uint64_t traces_left = 0;
  bool sends_named_files = false;
  // Directories that are no writer, for one of them why.
  std::uint64_t unreadable = 0;
  std::string trouble;
  bool was_stopped = false;
};

// 0, kExitFailed where something was refused or unreadable, kExitAgain where something is left.
int ExitOf(const UploadOutcome& outcome);
// Lines for people; what went well first.
std::string UploadText(const UploadOutcome& outcome);
std::string UploadJson(const UploadOutcome& outcome);

}  // namespace stepwell::cli
