#include "tests/unit/recorder/files/fuse_mount.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

namespace stepwell::recorder {
namespace {

// What a read of the device must have room for.
constexpr std::uint32_t kMaxWriteBytes = 4096;
constexpr std::size_t kRequestBytes = FUSE_MIN_READ_BUFFER + 2 * kMaxWriteBytes;

template <typename T>
std::string_view BytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

// All nodes are directories that only their owner may enter, as a spool root must be.
fuse_attr AttributesOf(std::uint64_t node) {
  fuse_attr found{};
  found.ino = node;
  found.mode = S_IFDIR | 0700;
  found.nlink = 2;
  found.uid = geteuid();
  found.gid = getegid();
  found.blksize = 4096;
  return found;
}

}  // namespace

FuseMount::FuseMount(std::string path)
    : path_(std::move(path)),
      device_(open("/dev/fuse", O_RDWR | O_NONBLOCK | O_CLOEXEC)),
      stop_(eventfd(0, EFD_CLOEXEC)) {
  const std::string options = "fd=" + std::to_string(device_) +
                              ",rootmode=40000,user_id=" + std::to_string(geteuid()) +
                              ",group_id=" + std::to_string(getegid());
  if (device_ >= 0 &&
      mount("stepwell-test", path_.c_str(), "fuse", MS_NOSUID | MS_NODEV, options.c_str()) == 0) {
    server_ = std::thread([this] { Serve(); });
  }
}

FuseMount::~FuseMount() {
  if (is_mounted()) {
    umount2(path_.c_str(), MNT_DETACH);
    eventfd_write(stop_, 1);
    server_.join();
  }
  // Who still asks gets an error from here on.
  close(device_);
  close(stop_);
}

void FuseMount::Serve() {
  std::array<pollfd, 2> waited = {{{device_, POLLIN, 0}, {stop_, POLLIN, 0}}};
  while (poll(waited.data(), waited.size(), -1) >= 0 && waited[1].revents == 0) {
    alignas(fuse_in_header) std::array<char, kRequestBytes> request{};
    const ssize_t got = read(device_, request.data(), request.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOENT)) continue;
    if (got < static_cast<ssize_t>(sizeof(fuse_in_header))) return;
    Answer(*reinterpret_cast<const fuse_in_header*>(request.data()),
           std::string_view(request.data(), static_cast<std::size_t>(got))
               .substr(sizeof(fuse_in_header)));
  }
}

void FuseMount::Answer(const fuse_in_header& asked, std::string_view body) {
  switch (asked.opcode) {
    case FUSE_INIT: {
      fuse_init_out answer{};
      answer.major = FUSE_KERNEL_VERSION;
      answer.minor = FUSE_KERNEL_MINOR_VERSION;
      answer.max_write = kMaxWriteBytes;
      return Reply(asked, 0, BytesOf(answer));
    }
    case FUSE_GETATTR: {
      fuse_attr_out answer{};
      answer.attr = AttributesOf(asked.nodeid);
      return Reply(asked, 0, BytesOf(answer));
    }
    case FUSE_STATFS:
      return Reply(asked, 0, BytesOf(fuse_statfs_out{}));
    case FUSE_OPENDIR:
      return Reply(asked, 0, BytesOf(fuse_open_out{}));
    case FUSE_LOOKUP:
      return ReplyEntry(asked, body.data());
    case FUSE_MKDIR:
      names_.emplace_back(body.substr(sizeof(fuse_mkdir_in)).data());
      ++made_count_;
      return ReplyEntry(asked, names_.back());
    case FUSE_RELEASEDIR:
      return Reply(asked, 0);
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
      return;  // take no answer
    default:
      return Reply(asked, ENOSYS);
  }
}

void FuseMount::ReplyEntry(const fuse_in_header& asked, std::string_view name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found == names_.end()) return Reply(asked, ENOENT);
  fuse_entry_out answer{};
  answer.nodeid = FUSE_ROOT_ID + 1 + static_cast<std::uint64_t>(found - names_.begin());
  answer.attr = AttributesOf(answer.nodeid);
  Reply(asked, 0, BytesOf(answer));
}

void FuseMount::Reply(const fuse_in_header& asked, int error, std::string_view body) const {
  fuse_out_header header{};
  header.len = static_cast<std::uint32_t>(sizeof(header) + body.size());
  header.error = -error;
  header.unique = asked.unique;
  const iovec parts[] = {{&header, sizeof(header)}, {const_cast<char*>(body.data()), body.size()}};
  // Whoever asked may be gone.
  (void)!writev(device_, parts, body.empty() ? 1 : 2);
}

}  // namespace stepwell::recorder
