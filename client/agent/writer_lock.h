// WriterLock: which processes of a writer live, as the locked bytes of its `lock` file tell. F_GETLK
// sees the lock of a process in any PID namespace, and no forked child inherits one. Confined to the
// agent's loop.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "client/agent/file_descriptor.h"

namespace stepwell::agent {

class WriterLock {
 public:
  static absl::StatusOr<WriterLock> Open(int writer_directory);

  // Of the process that opened the writer; `holder` 0 = in a PID namespace that the agent does not
  // see.
  bool IsProcessAlive(pid_t& holder) const;
  bool IsWorkerAlive(std::uint32_t worker) const;
  bool IsAnyWorkerAlive() const;

 private:
  explicit WriterLock(FileDescriptor file) : file_(std::move(file)) {}

  FileDescriptor file_;
};

}  // namespace stepwell::agent
