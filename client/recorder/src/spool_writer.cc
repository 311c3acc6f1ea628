#include "client/recorder/src/spool_writer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "client/recorder/src/file_room.h"
#include "client/recorder/src/spool_root.h"

namespace stepwell::recorder {
namespace {

UniqueFd NewFile(const UniqueFd& directory, const std::string& name) {
  return UniqueFd(openat(directory.get(), name.c_str(),
                         O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
}

// Dies with the process in any PID namespace, and is not inherited by a forked child.
bool TakeLock(int fd) {
  struct flock wanted {};
  wanted.l_type = F_WRLCK;
  wanted.l_whence = SEEK_SET;
  wanted.l_start = 0;
  wanted.l_len = 1;
  return fcntl(fd, F_SETLK, &wanted) == 0;
}

bool WriteWhole(int fd, const std::string& text) {
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = write(fd, text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    written += static_cast<std::size_t>(count);
  }
  return true;
}

}  // namespace

std::unique_ptr<SpoolWriter> SpoolWriter::Create(const std::string& root, const Identity& identity,
                                                 std::string* message) {
  std::unique_ptr<SpoolWriter> writer(new SpoolWriter);
  return writer->MakeFiles(root, identity, message) ? std::move(writer) : nullptr;
}

std::unique_ptr<SpoolWriter> SpoolWriter::CreateInMemory(const Identity& identity) {
  std::unique_ptr<SpoolWriter> writer(new SpoolWriter);
  void* header = MapPrivate(spool::kPageBytes);
  void* names = MapPrivate(spool::kNamesBytesMax);
  if (names != nullptr) writer->names_ = static_cast<std::byte*>(names);
  if (header != nullptr) writer->FormatHeader(header, identity);
  return header != nullptr && names != nullptr ? std::move(writer) : nullptr;
}

SpoolWriter::~SpoolWriter() {
  if (header_ != nullptr) munmap(header_, spool::kPageBytes);
  UnmapNames();
}

void SpoolWriter::UnmapNames() {
  if (names_ != nullptr) munmap(names_, spool::kNamesBytesMax);
  names_ = nullptr;
}

bool SpoolWriter::MakeFiles(const std::string& root, const Identity& identity,
                            std::string* message) {
  const UniqueFd root_directory = OpenSpoolRoot(root, message);
  if (root_directory.get() < 0) return false;
  const std::string format_path = root + "/" + spool::kFormatDirectory;
  const UniqueFd format =
      OpenSpoolFolder(root_directory, spool::kFormatDirectory, format_path, message);
  if (format.get() < 0) return false;
  directory_path_ = format_path + "/" + identity.writer;
  directory_ = OpenSpoolFolder(format, identity.writer, directory_path_, message);
  if (directory_.get() < 0) return false;

  lock_ = NewFile(directory_, spool::kLockFile);
  void* header = nullptr;
  void* names = nullptr;
  bool made = lock_.get() >= 0 && TakeLock(lock_.get()) &&
              MapFile(spool::kHeaderFile, spool::kPageBytes, &header) &&
              MapFile(spool::kNamesFile, spool::kNamesBytesMax, &names);
  names_ = static_cast<std::byte*>(names);
  if (header != nullptr) FormatHeader(header, identity);
  made = made && WriteIdentity(identity);
  if (!made) *message = "cannot write to the spool directory " + root + ": " + std::strerror(errno);
  return made;
}

bool SpoolWriter::MapFile(const char* name, std::size_t bytes, void** mapped) {
  const UniqueFd file = NewFile(directory_, name);
  if (file.get() >= 0) *mapped = MapNewFile(file.get(), bytes);
  return *mapped != nullptr;
}

void SpoolWriter::FormatHeader(void* mapped, const Identity& identity) {
  header_ = new (mapped) spool::WriterHeader{};
  std::memcpy(header_->magic, spool::kHeaderMagic, sizeof(header_->magic));
  header_->format_version = spool::kFormatVersion;
  header_->pid = static_cast<std::uint32_t>(identity.pid);
  header_->opened_ns = identity.opened_monotonic_ns;
  header_->state.store(spool::kWriterOpen, std::memory_order_release);
}

bool SpoolWriter::WriteIdentity(const Identity& identity) {
  const std::string draft = std::string(spool::kWriterFile) + ".draft";
  const UniqueFd file = NewFile(directory_, draft);
  return file.get() >= 0 && WriteWhole(file.get(), ToJson(identity)) &&
         renameat(directory_.get(), draft.c_str(), directory_.get(), spool::kWriterFile) == 0;
}

std::unique_ptr<Ring> SpoolWriter::MakeRing(Ring::Spec spec) {
  const std::size_t bytes = spool::RingFileBytes(spec.capacity);
  if (ring_bytes_.fetch_add(bytes) + bytes > spool::kProcessRingBytesMax) {
    ring_bytes_.fetch_sub(bytes);
    return nullptr;
  }
  const std::lock_guard lock(ring_making_);
  spec.ring = header_->ring_count.load(std::memory_order_relaxed);
  std::unique_ptr<Ring> ring = MapRing(spec);
  if (ring == nullptr) {
    ring_bytes_.fetch_sub(bytes);
  } else {
    header_->ring_count.store(spec.ring + 1, std::memory_order_release);
  }
  return ring;
}

std::unique_ptr<Ring> SpoolWriter::MapRing(const Ring::Spec& spec) {
  if (is_memory_only()) return Ring::MapAnonymous(spec);
  if (directory_.get() < 0) return nullptr;
  const std::string name = spool::kRingFilePrefix + std::to_string(spec.ring);
  const UniqueFd file = NewFile(directory_, name);
  if (file.get() < 0) return nullptr;
  std::unique_ptr<Ring> ring = Ring::Map(file.get(), spec);
  // A file of no ring keeps room that others need, and its number.
  if (ring == nullptr) unlinkat(directory_.get(), name.c_str(), 0);
  return ring;
}

void SpoolWriter::FreeRing(std::unique_ptr<Ring> ring) { ring_bytes_.fetch_sub(ring->bytes()); }

}  // namespace stepwell::recorder
