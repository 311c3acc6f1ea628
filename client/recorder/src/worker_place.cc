#include "client/recorder/src/worker_place.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>
#include <vector>

#include "client/recorder/src/spool_file.h"
#include "client/recorder/src/spool_format.h"

namespace stepwell::recorder {
namespace {

// Directories of dead workers of one index that an agent has not drained. Where nobody comes for
// them, each would keep most of a MiB.
constexpr std::size_t kUndrainedMax = 64;

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

// The numbers n of the directories w<k>-<n> that exist.
bool ListAgain(int writer, const std::string& prefix, std::vector<std::uint32_t>* found) {
  const int fd = openat(writer, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* listing = fd < 0 ? nullptr : fdopendir(fd);
  if (listing == nullptr) {
    if (fd >= 0) close(fd);
    return false;
  }
  while (const dirent* entry = readdir(listing)) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with(prefix)) continue;
    std::uint32_t n = 0;
    std::from_chars(name.data() + prefix.size(), name.data() + name.size(), n);
    found->push_back(n);
  }
  closedir(listing);
  return true;
}

// Above all that exist, so that an agent knows the dead by a higher one.
bool MakeDirectory(int writer, WorkerPlace& place) {
  const std::string prefix = spool::kWorkerDirectoryPrefix + std::to_string(place.index) + "-";
  std::vector<std::uint32_t> found;
  if (!ListAgain(writer, prefix, &found)) return false;
  if (found.size() >= kUndrainedMax) {
    errno = EEXIST;
    return false;
  }
  const std::uint32_t n = found.empty() ? 0 : *std::max_element(found.begin(), found.end()) + 1;
  place.name = prefix + std::to_string(n);
  if (mkdirat(writer, place.name.c_str(), 0700) != 0) return false;
  place.directory =
      UniqueFd(openat(writer, place.name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return place.directory.get() >= 0;
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
