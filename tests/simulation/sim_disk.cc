#include "tests/simulation/sim_disk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/check.h"

namespace stepwell::simulation {
namespace {

namespace fs = std::filesystem;

SimDisk* current = nullptr;

std::pair<ino_t, off_t> LookAt(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return {0, 0};
  return {status.st_ino, status.st_size};
}

ssize_t RealWrite(int fd, const void* bytes, std::size_t size, off_t offset) {
  return syscall(SYS_pwrite64, fd, bytes, size, offset);
}

int Fail(int error) {
  errno = error;
  return -1;
}

}  // namespace

SimDisk::SimDisk(std::string root, Chance& chance) : root_(std::move(root)), chance_(chance) {
  STEPWELL_CHECK(current == nullptr);
  fs::remove_all(root_);
  fs::create_directories(root_);
  current = this;
}

SimDisk::~SimDisk() {
  current = nullptr;
  std::error_code ignored;
  fs::remove_all(root_, ignored);
  fs::remove_all(root_ + "-aside", ignored);
}

void SimDisk::GoOn() {
  stopped_ = false;
  stop_after_ = UINT64_MAX;
}

SimDisk::May SimDisk::Change() {
  if (stopped_) return May::kNothing;
  if (stop_after_ == UINT64_MAX || stop_after_-- > 0) return May::kAll;
  stopped_ = true;
  return May::kPart;
}

int SimDisk::Open(int directory, const char* name, int flags, mode_t mode) {
  const bool creates = (flags & O_CREAT) != 0;
  struct stat status {};
  const bool is_there = fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
  if (creates && Change() != May::kAll) return Fail(EIO);
  if (creates && full_ && !is_there) return Fail(ENOSPC);
  const int fd = static_cast<int>(syscall(SYS_openat, directory, name, flags, mode));
  if (fd < 0 || !creates) return fd;
  const ino_t inode = LookAt(fd).first;
  if (!is_there) files_[inode] = File();
  if ((flags & O_TRUNC) != 0) files_[inode].durable_bytes = 0;
  return fd;
}

ssize_t SimDisk::Write(int fd, const void* bytes, std::size_t size, off_t offset) {
  const May may = Change();
  if (may == May::kNothing) return Fail(EIO);
  if (may == May::kAll && !full_) {
    files_[LookAt(fd).first].unsynced[++write_count_] = {offset, offset + static_cast<off_t>(size)};
    return RealWrite(fd, bytes, size, offset);
  }
  const std::size_t part = chance_.Below(size + 1);
  if (part > 0) RealWrite(fd, bytes, part, offset);
  return Fail(may == May::kPart ? EIO : ENOSPC);
}

int SimDisk::Truncate(int fd, off_t size) {
  if (Change() != May::kAll) return Fail(EIO);
  const ino_t inode = LookAt(fd).first;
  if (const auto file = files_.find(inode); file != files_.end()) {
    file->second.durable_bytes = std::min(file->second.durable_bytes, size);
    std::erase_if(file->second.lost, [size](const Range& each) { return each.begin >= size; });
    std::erase_if(file->second.unsynced,
                  [size](const auto& each) { return each.second.begin >= size; });
  }
  return static_cast<int>(syscall(SYS_ftruncate, fd, size));
}

int SimDisk::Sync(int fd) {
  if (stopped_) return Fail(EIO);
  const auto [inode, bytes] = LookAt(fd);
  const auto file = files_.find(inode);
  if (file == files_.end()) {
    // A directory: its entries are durable from here on.
    for (auto& [each, state] : files_) state.entry_durable = true;
    return 0;
  }
  file->second.unsynced.clear();
  if (chance_.Of(sync_failure_)) {
    if (bytes > file->second.durable_bytes) {
      file->second.lost.push_back({file->second.durable_bytes, bytes});
    }
    file->second.durable_bytes = bytes;
    return Fail(EIO);
  }
  file->second.durable_bytes = std::max(file->second.durable_bytes, bytes);
  return 0;
}

int SimDisk::Unlink(int directory, const char* name, int flags) {
  if (Change() != May::kAll) return Fail(EIO);
  struct stat status {};
  if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0) files_.erase(status.st_ino);
  return static_cast<int>(syscall(SYS_unlinkat, directory, name, flags));
}

int SimDisk::Rename(int from_directory, const char* from, int to_directory, const char* to) {
  if (Change() != May::kAll) return Fail(EIO);
  return static_cast<int>(syscall(SYS_renameat, from_directory, from, to_directory, to));
}

std::set<std::uint64_t> SimDisk::UnsyncedWrites(const std::string& folder) const {
  std::set<std::uint64_t> numbers;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    struct stat status {};
    if (!entry.is_regular_file() || stat(entry.path().c_str(), &status) != 0) continue;
    const auto file = files_.find(status.st_ino);
    if (file == files_.end()) continue;
    for (const auto& [number, range] : file->second.unsynced) numbers.insert(number);
  }
  return numbers;
}

void SimDisk::LosePower(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) LosePowerOf(path);
}

// Beside all agents.
std::string SimDisk::AsideOf(const std::string& folder) const {
  return root_ + "-aside" + folder.substr(root_.size());
}

void SimDisk::PutAside(const std::string& folder) {
  current = nullptr;  // these are no agent's calls
  fs::remove_all(AsideOf(folder));
  fs::create_directories(AsideOf(folder));
  fs::copy(folder, AsideOf(folder), fs::copy_options::recursive);
  current = this;
}

void SimDisk::SetBack(const std::string& folder) {
  current = nullptr;
  fs::remove_all(folder);
  fs::copy(AsideOf(folder), folder, fs::copy_options::recursive);
  current = this;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    struct stat status {};
    if (!entry.is_regular_file() || stat(entry.path().c_str(), &status) != 0) continue;
    files_[status.st_ino] = {.durable_bytes = status.st_size, .entry_durable = true, .lost = {}};
  }
}

void SimDisk::LosePowerOf(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return;
  const auto found = files_.find(status.st_ino);
  if (found == files_.end()) return;
  File& file = found->second;
  if (!file.entry_durable && file.durable_bytes == 0 && chance_.Of(0.5)) {
    files_.erase(found);
    fs::remove(path);
    return;
  }
  const off_t durable = std::min(file.durable_bytes, status.st_size);
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  STEPWELL_CHECK(fd >= 0);
  // Some of what was not synced came to the disk; its length may have come without it.
  const off_t kept =
      durable +
      static_cast<off_t>(chance_.Below(static_cast<std::size_t>(status.st_size - durable) + 1));
  const off_t length = chance_.Of(0.3) ? status.st_size : kept;
  file.lost.push_back({kept, length});
  for (const Range& range : file.lost) {
    const off_t end = std::min(range.end, length);
    if (end <= range.begin) continue;
    const std::string zeros(static_cast<std::size_t>(end - range.begin), '\0');
    RealWrite(fd, zeros.data(), zeros.size(), range.begin);
  }
  STEPWELL_CHECK(syscall(SYS_ftruncate, fd, length) == 0);
  close(fd);
  file = {.durable_bytes = length, .entry_durable = true, .lost = {}};
}

}  // namespace stepwell::simulation

// The C library's, in this program.
namespace disk = stepwell::simulation;

extern "C" int openat(int directory, const char* name, int flags, ...) {
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0) {
    va_list rest;
    va_start(rest, flags);
    mode = va_arg(rest, mode_t);
    va_end(rest);
  }
  if (disk::current != nullptr) return disk::current->Open(directory, name, flags, mode);
  return static_cast<int>(syscall(SYS_openat, directory, name, flags, mode));
}

extern "C" ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  if (disk::current != nullptr) return disk::current->Write(fd, bytes, size, offset);
  return disk::RealWrite(fd, bytes, size, offset);
}

extern "C" int ftruncate(int fd, off_t size) noexcept {
  if (disk::current != nullptr) return disk::current->Truncate(fd, size);
  return static_cast<int>(syscall(SYS_ftruncate, fd, size));
}

extern "C" int fdatasync(int fd) {
  if (disk::current != nullptr) return disk::current->Sync(fd);
  return static_cast<int>(syscall(SYS_fdatasync, fd));
}

extern "C" int fsync(int fd) {
  if (disk::current != nullptr) return disk::current->Sync(fd);
  return static_cast<int>(syscall(SYS_fsync, fd));
}

extern "C" int unlinkat(int directory, const char* name, int flags) noexcept {
  if (disk::current != nullptr) return disk::current->Unlink(directory, name, flags);
  return static_cast<int>(syscall(SYS_unlinkat, directory, name, flags));
}

extern "C" int renameat(int from_directory, const char* from, int to_directory,
                        const char* to) noexcept {
  if (disk::current != nullptr) {
    return disk::current->Rename(from_directory, from, to_directory, to);
  }
  return static_cast<int>(syscall(SYS_renameat, from_directory, from, to_directory, to));
}
