// ScratchDirectory: a fresh directory, in memory where /dev/shm is roomy and else under /tmp, that any
// user may pass through, so that the
// private PostgreSQL's user reaches what lies in it. Removed with its contents at the end; what a
// killed test left is removed by the next one.
#pragma once

#include <string>

namespace stepwell::testing {

class ScratchDirectory {
 public:
  ScratchDirectory();
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace stepwell::testing
