// AgentLock: one agent per root and format. Held as long as the object lives; the kernel frees it
// when the agent dies. Thread-compatible.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/agent/file_descriptor.h"

namespace stepwell::agent {

// Opens (or makes) the spool root and its format directory. Refuses a root that is a link, is not
// ours or may be entered by others.
absl::StatusOr<FileDescriptor> OpenFormatDirectory(const std::string& root);

class AgentLock {
 public:
  // kAlreadyExists: another agent holds it; the message names its process.
  static absl::StatusOr<AgentLock> Take(int format_directory);

 private:
  explicit AgentLock(FileDescriptor file) : file_(std::move(file)) {}
  FileDescriptor file_;
};

}  // namespace stepwell::agent
