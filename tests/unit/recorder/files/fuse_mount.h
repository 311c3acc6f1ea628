// FuseMount is a real FUSE mount for a test: a directory without files, served by a thread of this
// process through /dev/fuse. Directories can be made in it, and are counted.
//
//   if (!TakeOwnMounts()) ...
//   FuseMount mount("/tmp/fuse");
//   if (!mount.is_mounted()) ...  // not allowed here
#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

struct fuse_in_header;

namespace stepwell::recorder {

class FuseMount {
 public:
  // Over the directory `path`.
  explicit FuseMount(std::string path);
  ~FuseMount();
  FuseMount(const FuseMount&) = delete;
  FuseMount& operator=(const FuseMount&) = delete;

  bool is_mounted() const { return server_.joinable(); }
  int made_count() const { return made_count_; }

 private:
  void Serve();
  void Answer(const fuse_in_header& asked, std::string_view body);
  // Replies with an error number, 0 = none, and what was asked for.
  void Reply(const fuse_in_header& asked, int error, std::string_view body = {}) const;
  // Answers the directory of this name, which is kept in names_; -ENOENT where there is none.
  void ReplyEntry(const fuse_in_header& asked, std::string_view name) const;

  const std::string path_;
  const int device_;
  const int stop_;
  std::atomic<int> made_count_{0};
  // Of the server's thread.
  std::vector<std::string> names_;
  std::thread server_;
};

}  // namespace stepwell::recorder
