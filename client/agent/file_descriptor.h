// FileDescriptor: an open file, closed by its owner. Thread-compatible; the calls on the file
// itself are as safe as the kernel's.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace stepwell::agent {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) {
      Close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~FileDescriptor() { Close(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  // The caller closes it.
  [[nodiscard]] int Release() { return std::exchange(fd_, -1); }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

// openat(2) that follows no link in the last step, takes no FIFO, socket or device, and is not
// inherited. O_NOATIME, where reading should not write to the disk, is left out where it is not
// allowed. Errors name `name`.
absl::StatusOr<FileDescriptor> OpenAt(int directory, const std::string& name, int flags,
                                      unsigned mode = 0600);
// Opens a directory that is no link; with `create` makes it (0700) where it is absent.
enum class WhenAbsent { kFail, kCreate };
absl::StatusOr<FileDescriptor> OpenDirectoryAt(int directory, const std::string& name,
                                               WhenAbsent when_absent);
// What a directory holds, in no order, without "." and "..".
absl::StatusOr<std::vector<std::string>> ListNames(int directory);
// Removes `name` in `directory` with all that is in it, following no link. At most a few levels.
void RemoveTree(int directory, const std::string& name, int depth_max);
// Up to `size` bytes from `offset`; fewer at the end of the file.
absl::StatusOr<std::string> ReadAt(int fd, std::uint64_t offset, std::size_t size);
// The same into `bytes`; answers how many came.
absl::StatusOr<std::size_t> ReadInto(int fd, std::uint64_t offset, std::span<std::byte> bytes);
// All of `bytes` at `offset`, or an error: kResourceExhausted for a full disk or quota.
absl::Status WriteAt(int fd, std::uint64_t offset, std::string_view bytes);
// The bytes of `field`, as they lie in memory.
template <typename Field>
absl::Status StoreAt(const FileDescriptor& file, std::uint64_t offset, const Field& field) {
  return WriteAt(file.get(), offset, {reinterpret_cast<const char*>(&field), sizeof(field)});
}
// The whole of a small regular file, at most `size_max` bytes.
absl::StatusOr<std::string> ReadSmallFileAt(int directory, const std::string& name,
                                            std::size_t size_max);

}  // namespace stepwell::agent
