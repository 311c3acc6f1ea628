// MapNewFile gives an empty file its blocks and maps them: the one way this library gets shared
// memory.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstddef>

namespace stepwell::recorder {

// Null with errno on failure. Blocks on the file system. Does not close `fd`.
inline void* MapNewFile(int fd, std::size_t bytes) {
  // Growing past the limit would not return an error: the kernel sends SIGXFSZ, which ends the
  // trial.
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0) return nullptr;
  if (limit.rlim_cur != RLIM_INFINITY && bytes > limit.rlim_cur) {
    errno = EFBIG;
    return nullptr;
  }
  // A hole on a full tmpfs would be a SIGBUS in the trial at the first store.
  if (const int error = posix_fallocate(fd, 0, static_cast<off_t>(bytes)); error != 0) {
    errno = error;
    return nullptr;
  }
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
  return mapped == MAP_FAILED ? nullptr : mapped;
}

inline void* MapPrivate(std::size_t bytes) {
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  return mapped == MAP_FAILED ? nullptr : mapped;
}

}  // namespace stepwell::recorder
