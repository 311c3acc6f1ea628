#include "client/agent/agent_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/status_macros.h"

namespace stepwell::agent {
namespace {}  // namespace

absl::StatusOr<AgentLog> AgentLog::Open(int format_directory) {
  STEPWELL_ASSIGN_OR_RETURN(FileDescriptor directory,
                            OpenDirectoryAt(format_directory, ".", WhenAbsent::kFail));
  AgentLog log(std::move(directory));
  STEPWELL_RETURN_IF_ERROR(log.Redirect());
  log.Tend();
  return log;
}

absl::Status AgentLog::Redirect() {
  STEPWELL_ASSIGN_OR_RETURN(const FileDescriptor file,
                            OpenAt(directory_.get(), kAgentLogFile, O_WRONLY | O_APPEND | O_CREAT));
  if (dup2(file.get(), STDERR_FILENO) < 0) return absl::ErrnoToStatus(errno, "log into agent.log");
  return absl::OkStatus();
}

void AgentLog::Tend() {
  struct stat status {};
  if (fstat(STDERR_FILENO, &status) != 0 || status.st_size < kBytesMax) return;
  if (renameat(directory_.get(), kAgentLogFile, directory_.get(), kAgentLogOldFile) != 0) {
    // Bounded all the same.
    [[maybe_unused]] const int cut = ftruncate(STDERR_FILENO, 0);
    return;
  }
  Redirect().IgnoreError();
}

}  // namespace stepwell::agent
