#include "client/recorder/src/shared_rings.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

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

// The path of a writer, and which directory it lies in, for another container's may have its name.
std::string OwnerText(const std::string& writer_path) {
  struct stat status {};
  const std::string parent = writer_path.substr(0, writer_path.rfind('/'));
  if (stat(parent.c_str(), &status) != 0) return "";
  return writer_path + "\n" + std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
}

bool WriteText(const UniqueFd& directory, const std::string& text) {
  const UniqueFd file = NewFile(directory, spool::kRingOwnerFile);
  return file.get() >= 0 &&
         write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

}  // namespace

SharedRingPlace SharedRingPlace::Read(const Environment& environment, std::int32_t world_size) {
  SharedRingPlace place;
  const char* memory = environment("STEPWELL_SHARED_MEMORY");
  const std::string directory = memory == nullptr ? "/dev/shm" : memory;
  if (!directory.starts_with('/')) return place;
  place.home = directory + "/stepwell-" + std::to_string(geteuid());
  const std::string local = ReadVariable(environment, "LOCAL_WORLD_SIZE");
  std::int32_t count = 0;
  std::from_chars(local.data(), local.data() + local.size(), count);
  if (count < 1) count = std::max(world_size, 1);
  place.need_bytes = static_cast<std::size_t>(count) * spool::kRingBytesMax;
  return place;
}

std::unique_ptr<SharedRings> SharedRings::Make(const SharedRingPlace& place,
                                               const std::string& writer,
                                               const std::string& writer_path) {
  std::string ignored;  // beside the spool is always right
  const UniqueFd home = OpenSpoolRoot(place.home, &ignored);
  if (home.get() < 0 || !IsMemory(home.get())) return nullptr;
  const std::string path = place.home + "/" + writer;
  UniqueFd directory = OpenSpoolFolder(home, writer, path, &ignored);
  if (directory.get() < 0) return nullptr;
  std::unique_ptr<SharedRings> rings(new SharedRings(path, std::move(directory), place.need_bytes));
  const std::string owner = OwnerText(writer_path);
  if (rings->HasRoom() && !owner.empty() && WriteText(rings->directory_, owner)) return rings;
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
