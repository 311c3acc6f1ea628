#include "tests/support/scratch_directory.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/check.h"

namespace stepwell::testing {

namespace {

// A container gives /dev/shm 64 MiB; a PostgreSQL with some test databases wants a few hundred.
constexpr std::uint64_t kRoomyBytes = std::uint64_t{2} << 30;

std::string Parent() {
  struct statvfs shm {};
  const bool roomy = statvfs("/dev/shm", &shm) == 0 &&
                     std::uint64_t{shm.f_bavail} * shm.f_frsize >= kRoomyBytes &&
                     access("/dev/shm", W_OK) == 0;
  return roomy ? "/dev/shm" : "/tmp";
}

// The name holds the pid of the test, so that leftovers of dead ones are known.
constexpr char kPrefix[] = "stepwell-test-";

bool RemoveLeftovers(const std::string& parent) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(parent, ignored)) {
    int pid = 0;
    const std::string name = entry.path().filename().string();
    if (std::sscanf(name.c_str(), "stepwell-test-%d-", &pid) != 1 || pid <= 0) continue;
    if (kill(pid, 0) == 0 || errno != ESRCH) continue;
    std::filesystem::remove_all(entry.path(), ignored);
  }
  return true;
}

}  // namespace

ScratchDirectory::ScratchDirectory()
    : path_(Parent() + "/" + kPrefix + std::to_string(getpid()) + "-XXXXXX") {
  static const bool removed = RemoveLeftovers(Parent());
  STEPWELL_CHECK(removed);
  STEPWELL_CHECK(mkdtemp(path_.data()) != nullptr);
  STEPWELL_CHECK(chmod(path_.c_str(), 0711) == 0);
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace stepwell::testing
