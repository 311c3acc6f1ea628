#include "client/recorder/src/worker_place.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "client/recorder/src/spool_file.h"
#include "client/recorder/src/spool_format.h"

namespace stepwell::recorder {
namespace {

// Directories of dead workers of one index that an agent has not drained. Where nobody comes for
// them, each would keep most of a MiB.
constexpr int kUndrainedMax = 64;

bool TakeByte(int lock, std::uint32_t* index) {
  for (std::uint32_t k = 0; k < spool::kWorkerCountMax; ++k) {
    if (TakeLockByte(lock, spool::WorkerLockByte(k))) {
      *index = k;
      return true;
    }
    if (errno != EAGAIN && errno != EACCES) return false;
  }
  errno = EUSERS;
  return false;
}

bool MakeDirectory(int writer, WorkerPlace& place) {
  for (int n = 0; n < kUndrainedMax; ++n) {
    place.name =
        spool::kWorkerDirectoryPrefix + std::to_string(place.index) + "-" + std::to_string(n);
    if (mkdirat(writer, place.name.c_str(), 0700) == 0) {
      place.directory = UniqueFd(
          openat(writer, place.name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      return place.directory.get() >= 0;
    }
    if (errno != EEXIST) return false;
  }
  return false;
}

}  // namespace

std::optional<WorkerPlace> TakeWorkerPlace(const UniqueFd& writer, std::string* message) {
  const auto refuse = [message] {
    *message = std::string("cannot join the writer of the process it was forked from: ") +
               (errno == EUSERS   ? "it has 1024 living workers"
                : errno == EEXIST ? "no agent has come for its earlier workers"
                                  : std::strerror(errno));
    return std::nullopt;
  };
  WorkerPlace place;
  // Opened anew: closing a descriptor that was inherited would do no harm to the parent's lock, but
  // would drop this process's own.
  place.lock = UniqueFd(openat(writer.get(), spool::kLockFile, O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (place.lock.get() < 0 || !TakeByte(place.lock.get(), &place.index)) return refuse();
  if (!MakeDirectory(writer.get(), place)) return refuse();
  return place;
}

}  // namespace stepwell::recorder
