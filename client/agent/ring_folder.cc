#include "client/agent/ring_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "client/agent/writer_identity.h"
#include "client/recorder/src/spool_format.h"

namespace stepwell::agent {
namespace {

constexpr std::size_t kWriterJsonBytesMax = 256 << 10;
constexpr std::size_t kPathBytesMax = 4096;
constexpr int kTreeDepthMax = 3;
// spool/<number>/<segment> below a writer's directory.
constexpr int kWriterDepth = 4;

// Nothing where it is absent, a link, foreign, or open to others.
FileDescriptor OpenPrivate(int parent, const std::string& path, unsigned owner) {
  absl::StatusOr<FileDescriptor> directory = OpenDirectoryAt(parent, path, WhenAbsent::kFail);
  struct stat status {};
  if (!directory.ok() || fstat(directory->get(), &status) != 0 || status.st_uid != owner ||
      (status.st_mode & 077) != 0) {
    return FileDescriptor();
  }
  return *std::move(directory);
}

// What the file beside the rings says: the path of their writer, and device and inode of the
// directory that it lies in. Where those are absent or others, the path is another container's.
struct RingOwner {
  std::string path;
  std::string parent;  // "device:inode"
};

absl::StatusOr<RingOwner> ReadRingOwner(int rings) {
  STEPWELL_ASSIGN_OR_RETURN(std::string text,
                            ReadSmallFileAt(rings, spool::kRingOwnerFile, kPathBytesMax + 64));
  const std::size_t end = text.find('\n');
  if (end == std::string::npos) return absl::DataLossError("its second line is missing");
  return RingOwner{text.substr(0, end), text.substr(end + 1)};
}

bool LiesIn(const RingOwner& owner, int format_directory) {
  struct stat status {};
  return fstat(format_directory, &status) == 0 &&
         owner.parent == absl::StrCat(status.st_dev, ":", status.st_ino);
}

bool IsSame(int a, int b) {
  struct stat first {};
  struct stat second {};
  return fstat(a, &first) == 0 && fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

// A copy of a spool must not take the rings of the one it was copied from.
bool IsAnothers(int rings, int writer_directory) {
  const absl::StatusOr<RingOwner> told = ReadRingOwner(rings);
  if (!told.ok()) return true;
  const absl::StatusOr<FileDescriptor> owner =
      OpenDirectoryAt(AT_FDCWD, told->path, WhenAbsent::kFail);
  // Nobody's by now: the spool was moved.
  if (absl::IsNotFound(owner.status())) return false;
  return !owner.ok() || !IsSame(owner->get(), writer_directory);
}

// What is in it by its descriptor: the path to it is another's word.
void RemoveRings(const WriterIdentity& identity, int writer_directory) {
  const RingFolder folder = RingFolder::Open(identity.rings, identity.writer, writer_directory);
  if (!folder.visible()) return;
  const absl::StatusOr<std::vector<std::string>> names = ListNames(folder.get());
  if (!names.ok()) return;
  for (const std::string& name : *names) RemoveTree(folder.get(), name, kTreeDepthMax - 1);
  rmdir(identity.rings.c_str());
}

bool Exists(int directory, const std::string& name) {
  return faccessat(directory, name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

}  // namespace

bool IsRingPath(std::string_view path, const Uuid& writer) {
  const std::string last = absl::StrCat("/", writer.ToText());
  return path.size() > last.size() && path.size() <= kPathBytesMax && path.front() == '/' &&
         path.ends_with(last);
}

RingFolder RingFolder::Open(const std::string& path, const Uuid& writer, int writer_directory) {
  RingFolder folder;
  if (path.empty()) return folder;
  struct stat status {};
  if (IsRingPath(path, writer) && fstat(writer_directory, &status) == 0) {
    folder.directory_ = OpenPrivate(AT_FDCWD, path, status.st_uid);
  }
  if (folder.visible() && IsAnothers(folder.get(), writer_directory)) folder.directory_.Close();
  folder.hidden_ = !folder.visible();
  return folder;
}

RingFolder RingFolder::OpenWorker(const std::string& name) const {
  RingFolder folder;
  folder.hidden_ = hidden_;
  struct stat status {};
  if (visible() && fstat(get(), &status) == 0) {
    folder.directory_ = OpenPrivate(get(), name, status.st_uid);
  }
  return folder;
}

void RemoveWriter(int format_directory, const std::string& name) {
  const absl::StatusOr<FileDescriptor> writer =
      OpenDirectoryAt(format_directory, name, WhenAbsent::kFail);
  if (writer.ok()) {
    const absl::StatusOr<std::string> json =
        ReadSmallFileAt(writer->get(), spool::kWriterFile, kWriterJsonBytesMax);
    const absl::StatusOr<WriterIdentity> identity =
        json.ok() ? ParseWriterJson(*json) : absl::StatusOr<WriterIdentity>(json.status());
    if (identity.ok()) RemoveRings(*identity, writer->get());
  }
  RemoveTree(format_directory, name, kWriterDepth);
}

std::string RingHome(unsigned owner) {
  const char* memory = std::getenv("STEPWELL_SHARED_MEMORY");
  return absl::StrCat(memory == nullptr ? "/dev/shm" : memory, "/stepwell-", owner);
}

int SweepRings(const std::string& home_path, int format_directory, unsigned owner) {
  int swept_count = 0;
  const FileDescriptor home = OpenPrivate(AT_FDCWD, home_path, owner);
  if (!home.valid()) return swept_count;
  const absl::StatusOr<std::vector<std::string>> names = ListNames(home.get());
  if (!names.ok()) return swept_count;
  for (const std::string& name : *names) {
    if (!Uuid::FromText(name)) continue;
    const FileDescriptor rings = OpenPrivate(home.get(), name, owner);
    if (!rings.valid()) continue;
    const absl::StatusOr<RingOwner> owner_told = ReadRingOwner(rings.get());
    if (!owner_told.ok() || !absl::EndsWith(owner_told->path, absl::StrCat("/", name))) continue;
    if (!LiesIn(*owner_told, format_directory) || Exists(format_directory, name)) continue;
    RemoveTree(home.get(), name, kTreeDepthMax);
    ++swept_count;
  }
  if (swept_count > 0) log::Info("rings_swept", {{"home", home_path}, {"writers", swept_count}});
  return swept_count;
}

}  // namespace stepwell::agent
