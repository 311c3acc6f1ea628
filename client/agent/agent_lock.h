// AgentLock: one agent per root and format. Held as long as the object lives; the kernel frees it
// when the agent dies. Its first byte says that an agent serves the root, the second that this one is
// about to leave. Thread-compatible.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/agent/file_descriptor.h"

namespace stepwell::agent {

// Opens (or makes) the spool root and its format directory. Refuses a root that is a link, is not
// ours or may be entered by others.
absl::StatusOr<FileDescriptor> OpenFormatDirectory(const std::string& root);

class AgentLock {
 public:
  struct Options {
    // A holder that is about to leave is waited for, at most so long.
    absl::Duration leaving_wait = absl::Seconds(8);
    // All users may ask it. One who keeps it from us by a lock for reading is left with the file: a
    // new one takes its place.
    bool is_public = false;
  };
  // kAlreadyExists: another agent holds it; the message names its process.
  static absl::StatusOr<AgentLock> Take(int format_directory, const Options& options);
  static absl::StatusOr<AgentLock> Take(int format_directory) {
    return Take(format_directory, Options());
  }

  absl::Status TakeLeaving();
  void StopLeaving();

 private:
  explicit AgentLock(FileDescriptor file) : file_(std::move(file)) {}
  FileDescriptor file_;
};

}  // namespace stepwell::agent
