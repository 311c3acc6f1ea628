// AgentLog: the log of an agent that nobody watches: what it writes to stderr, gRPC's and the C
// library's lines included, goes into `agent.log` beside its lock, and from 1 MiB on into a new one;
// the one before is kept as `agent.log.1`. Confined to the agent's loop.
//
//   STEPWELL_ASSIGN_OR_RETURN(AgentLog log, AgentLog::Open(format_directory));
//   log.Tend();     // each visit
#pragma once

#include <sys/types.h>

#include "absl/status/statusor.h"
#include "client/agent/file_descriptor.h"

namespace stepwell::agent {

inline constexpr char kAgentLogFile[] = "agent.log";
inline constexpr char kAgentLogOldFile[] = "agent.log.1";

class AgentLog {
 public:
  static constexpr off_t kBytesMax = 1 << 20;

  // From now on stderr of this process is the log.
  static absl::StatusOr<AgentLog> Open(int format_directory);
  // Begins a new file where this one is full. Goes on with it where that fails.
  void Tend();

 private:
  explicit AgentLog(FileDescriptor directory) : directory_(std::move(directory)) {}
  absl::Status Redirect();

  FileDescriptor directory_;
};

}  // namespace stepwell::agent
