#include "client/agent/writer_lock.h"

#include <fcntl.h>

#include <algorithm>

#include "base/status_macros.h"
#include "client/recorder/src/spool_format.h"

namespace stepwell::agent {
namespace {

bool IsLocked(int fd, off_t first, off_t count, pid_t* holder) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = first;
  lock.l_len = count;
  const bool is_locked = fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  if (holder != nullptr) *holder = is_locked ? std::max<pid_t>(lock.l_pid, 0) : 0;
  return is_locked;
}

}  // namespace

absl::StatusOr<WriterLock> WriterLock::Open(int writer_directory) {
  STEPWELL_ASSIGN_OR_RETURN(FileDescriptor file,
                            OpenAt(writer_directory, spool::kLockFile, O_RDONLY | O_NONBLOCK));
  return WriterLock(std::move(file));
}

bool WriterLock::IsProcessAlive(pid_t& holder) const {
  return IsLocked(file_.get(), spool::kProcessLockByte, 1, &holder);
}

bool WriterLock::IsWorkerAlive(std::uint32_t worker) const {
  return IsLocked(file_.get(), spool::WorkerLockByte(worker), 1, nullptr);
}

bool WriterLock::IsAnyWorkerAlive() const {
  return IsLocked(file_.get(), spool::WorkerLockByte(0), spool::kWorkerCountMax, nullptr);
}

}  // namespace stepwell::agent
