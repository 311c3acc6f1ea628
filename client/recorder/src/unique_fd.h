// UniqueFd owns a file descriptor, with care for programs that close every descriptor they see:
// before it is used or closed it is asked whether it is still the file that was opened.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>

namespace stepwell::recorder {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {
    struct stat found {};
    if (fd_ >= 0 && fstat(fd_, &found) == 0) {
      device_ = found.st_dev;
      inode_ = found.st_ino;
    }
  }
  ~UniqueFd() { Close(); }
  UniqueFd(UniqueFd&& other) noexcept { *this = std::move(other); }
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(device_, other.device_);
    std::swap(inode_, other.inode_);
    return *this;
  }

  // The descriptor, or -1 when it is not (or no longer) ours.
  int get() const {
    struct stat found {};
    if (fd_ < 0 || fstat(fd_, &found) != 0) return -1;
    return found.st_dev == device_ && found.st_ino == inode_ ? fd_ : -1;
  }

  // The same directory by a descriptor of its own; by `path` where this one was closed. Empty where
  // another stands there by now.
  UniqueFd Reopen(const std::string& path) const {
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    const int known = get();
    UniqueFd found(known >= 0 ? openat(known, ".", kFlags) : open(path.c_str(), kFlags));
    if (found.device_ != device_ || found.inode_ != inode_) found.Close();
    return found;
  }

  // The same file, read and written, by a descriptor of its own. Empty where another stands there by
  // now.
  UniqueFd ReopenFile(const std::string& path) const {
    UniqueFd found(open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (found.device_ != device_ || found.inode_ != inode_) found.Close();
    return found;
  }

  void Close() {
    if (get() >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace stepwell::recorder
