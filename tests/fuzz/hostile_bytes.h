// HostileBytes: any bytes as numbers and texts, the way a fuzzer makes them: never refuses, gives zeros
// behind the end. HostileFolder: a folder whose files say what a fuzzer wants. Header only. Confined to
// one thread.
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/check.h"

namespace stepwell::testing {

class HostileBytes {
 public:
  explicit HostileBytes(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  T Take() {
    T value{};
    const std::string_view taken = TakeBytes(sizeof(T));
    std::memcpy(&value, taken.data(), taken.size());
    return value;
  }
  // So many, or what is left.
  std::string_view TakeBytes(std::size_t count) {
    const std::string_view taken = bytes_.substr(0, std::min(count, bytes_.size()));
    bytes_.remove_prefix(taken.size());
    return taken;
  }
  // Up to `end`, which is taken, too, and not given.
  std::string_view TakeUntil(char end) {
    const std::string_view taken = bytes_.substr(0, bytes_.find(end));
    bytes_.remove_prefix(std::min(bytes_.size(), taken.size() + 1));
    return taken;
  }

  bool at_end() const { return bytes_.empty(); }
  std::string_view rest() const { return bytes_; }

 private:
  std::string_view bytes_;
};

// In memory where there is /dev/shm. Removed with its contents.
class HostileFolder {
 public:
  HostileFolder() {
    char in_memory[] = "/dev/shm/stepwell-hostile-XXXXXX";
    char on_disk[] = "/tmp/stepwell-hostile-XXXXXX";
    const char* made = mkdtemp(in_memory);
    if (made == nullptr) made = mkdtemp(on_disk);
    STEPWELL_CHECK(made != nullptr);
    path_ = made;
  }
  ~HostileFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  HostileFolder(const HostileFolder&) = delete;
  HostileFolder& operator=(const HostileFolder&) = delete;

  void Write(const std::string& name, std::string_view bytes) const {
    STEPWELL_CHECK(TryWrite(name, bytes));
  }
  // False where there can be no such file. REQUIRES: `name` leads to no place outside.
  bool TryWrite(const std::string& name, std::string_view bytes) const {
    const std::filesystem::path file = path_ / name;
    int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) {
      std::error_code ignored;
      std::filesystem::create_directories(file.parent_path(), ignored);
      fd = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    }
    if (fd < 0) return false;
    STEPWELL_CHECK(write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    close(fd);
    return true;
  }
  // Whether `name` can be one within a folder, and leads nowhere else.
  static bool IsName(std::string_view name) {
    return !name.empty() && name != "." && name != ".." &&
           name.find_first_of(std::string_view("/\0", 2)) == name.npos;
  }
  void Clear() const {
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      std::filesystem::remove_all(entry.path());
    }
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace stepwell::testing
