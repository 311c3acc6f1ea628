#include "client/recorder/src/shared_rings.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "client/recorder/src/spool_file.h"
#include "client/recorder/src/spool_format.h"
#include "client/recorder/src/spool_root.h"

namespace stepwell::recorder {
namespace {

constexpr std::size_t kRoomFactor = 4;

bool IsMemory(int fd) {
  struct statfs found {};
  return fstatfs(fd, &found) == 0 && (found.f_type == TMPFS_MAGIC || found.f_type == RAMFS_MAGIC);
}

bool WriteText(const UniqueFd& directory, const std::string& text) {
  const UniqueFd file = NewFile(directory, spool::kRingOwnerFile);
  return file.get() >= 0 &&
         write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

}  // namespace

std::string SharedRingHome() { return "/dev/shm/stepwell-" + std::to_string(geteuid()); }

std::size_t SharedRingNeed(const char* local_world_size, std::int32_t world_size) {
  std::int32_t count = 0;
  if (local_world_size != nullptr) {
    std::from_chars(local_world_size, local_world_size + std::strlen(local_world_size), count);
  }
  if (count < 1) count = std::max(world_size, 1);
  return static_cast<std::size_t>(count) * spool::kRingBytesMax;
}

std::unique_ptr<SharedRings> SharedRings::Make(const std::string& home, const std::string& writer,
                                               const std::string& writer_path,
                                               std::size_t need_bytes) {
  std::string ignored;  // beside the spool is always right
  const UniqueFd parent = OpenSpoolRoot(home, &ignored);
  if (parent.get() < 0 || !IsMemory(parent.get())) return nullptr;
  const std::string path = home + "/" + writer;
  UniqueFd directory = OpenSpoolFolder(parent, writer, path, &ignored);
  if (directory.get() < 0) return nullptr;
  std::unique_ptr<SharedRings> rings(new SharedRings(path, std::move(directory), need_bytes));
  if (rings->HasRoom() && WriteText(rings->directory_, writer_path)) return rings;
  rings->Remove();
  return nullptr;
}

std::unique_ptr<SharedRings> SharedRings::Reopen() const {
  UniqueFd again = directory_.Reopen(path_);
  if (again.get() < 0) return nullptr;
  return std::unique_ptr<SharedRings>(new SharedRings(path_, std::move(again), need_bytes_));
}

std::unique_ptr<SharedRings> SharedRings::MakeWorker(const std::string& name) const {
  std::string ignored;
  const std::string path = path_ + "/" + name;
  UniqueFd directory = OpenSpoolFolder(directory_, name, path, &ignored);
  if (directory.get() < 0) return nullptr;
  return std::unique_ptr<SharedRings>(new SharedRings(path, std::move(directory), need_bytes_));
}

void SharedRings::Remove() {
  unlinkat(directory_.get(), spool::kRingOwnerFile, 0);
  rmdir(path_.c_str());
}

bool SharedRings::HasRoom() const {
  struct statvfs found {};
  if (fstatvfs(directory_.get(), &found) != 0) return false;
  return found.f_bavail * found.f_frsize / kRoomFactor >= need_bytes_;
}

}  // namespace stepwell::recorder
