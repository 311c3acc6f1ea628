#include "client/recorder/src/spool_writer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <optional>

#include "client/recorder/src/file_room.h"
#include "client/recorder/src/memory_room.h"
#include "client/recorder/src/monotonic.h"
#include "client/recorder/src/room_turn.h"
#include "client/recorder/src/spool_file.h"
#include "client/recorder/src/spool_root.h"
#include "client/recorder/src/worker_place.h"

namespace stepwell::recorder {
namespace {

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

std::unique_ptr<SpoolWriter> SpoolWriter::Create(const std::string& root, Identity identity,
                                                 const SharedRingPlace& rings,
                                                 std::string* message) {
  std::unique_ptr<SpoolWriter> writer(new SpoolWriter);
  if (writer->MakeFiles(root, std::move(identity), rings, message)) return writer;
  if (writer->shared_rings_ != nullptr) writer->shared_rings_->Remove();
  return nullptr;
}

std::unique_ptr<SpoolWriter> SpoolWriter::CreateWorker(std::string* message) const {
  std::unique_ptr<SpoolWriter> worker(new SpoolWriter);
  worker->around_ = OpenAround();
  std::optional<WorkerPlace> place = TakeWorkerPlace(worker->around_.directory, message);
  if (!place) return nullptr;
  worker->worker_ = place->index;
  worker->directory_path_ = worker->around_.path + "/" + place->name;
  worker->directory_ = std::move(place->directory);
  worker->lock_ = std::move(place->lock);
  if (worker->around_.shared_rings != nullptr) {
    worker->shared_rings_ = worker->around_.shared_rings->MakeWorker(place->name);
  }
  if (worker->MakeWorkerFiles(*header_)) return worker;
  *message = "cannot write to the spool directory " + worker->directory_path_ + ": " +
             std::strerror(errno);
  worker->Withdraw();
  return nullptr;
}

std::unique_ptr<SpoolWriter> SpoolWriter::CreateInMemory(const Identity& identity) {
  std::unique_ptr<SpoolWriter> writer(new SpoolWriter);
  void* header = MapPrivate(spool::kPageBytes);
  void* names = MapPrivate(spool::kNamesBytesMax);
  if (names != nullptr) writer->names_ = static_cast<std::byte*>(names);
  if (header != nullptr) {
    writer->FormatHeader(header, identity.pid, identity.opened_monotonic_ns);
  }
  return header != nullptr && names != nullptr ? std::move(writer) : nullptr;
}

void SpoolWriter::UnmapNames() {
  if (names_ != nullptr) munmap(names_, spool::kNamesBytesMax);
  names_ = nullptr;
}

bool SpoolWriter::IsOrphan() const {
  return IsUnattended() && static_cast<std::uint32_t>(getppid()) != around_.pid;
}

bool SpoolWriter::IsUnattended() const {
  const std::lock_guard lock(locking_);
  return is_worker() && !IsLockByteTaken(lock_.get(), spool::kProcessLockByte);
}

void SpoolWriter::KeepFiles() {
  if (is_memory_only()) return;
  if (directory_.get() < 0) directory_ = directory_.Reopen(directory_path_);
  if (shared_rings_ != nullptr && shared_rings_->directory().get() < 0) {
    if (auto again = shared_rings_->Reopen()) shared_rings_ = std::move(again);
  }
  const std::lock_guard lock(locking_);
  const std::string& around = is_worker() ? around_.path : directory_path_;
  if (lock_.get() < 0) lock_ = lock_.ReopenFile(around + "/" + spool::kLockFile);
  (void)TakeLockByte(lock_.get(),
                     is_worker() ? spool::WorkerLockByte(worker_) : spool::kProcessLockByte);
}

void SpoolWriter::Unlock() {
  const std::lock_guard lock(locking_);
  lock_.Close();
}

void SpoolWriter::CloseDirectories() {
  directory_.Close();
  shared_rings_.reset();
  around_.directory.Close();
  around_.shared_rings.reset();
}

bool SpoolWriter::IsAlone() const {
  struct flock asked = WholeByte(spool::kProcessLockByte);
  asked.l_len = spool::WorkerLockByte(spool::kWorkerCountMax);
  return is_worker() && fcntl(lock_.get(), F_GETLK, &asked) == 0 && asked.l_type == F_UNLCK;
}

bool SpoolWriter::HasWriterEnded() const {
  const UniqueFd header(
      openat(around_.directory.get(), spool::kHeaderFile, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  std::uint32_t ended = 0;
  return header.get() < 0 ||
         pread(header.get(), &ended, sizeof(ended), offsetof(spool::WriterHeader, ended)) !=
             sizeof(ended) ||
         ended != 0;
}

bool SpoolWriter::MakeFiles(const std::string& root, Identity identity,
                            const SharedRingPlace& rings, std::string* message) {
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
  bool made = lock_.get() >= 0 && TakeLockByte(lock_.get(), spool::kProcessLockByte) &&
              MapFile(spool::kHeaderFile, spool::kPageBytes, &header) &&
              MapFile(spool::kNamesFile, spool::kNamesBytesMax, &names);
  names_ = static_cast<std::byte*>(names);
  if (header != nullptr) FormatHeader(header, identity.pid, identity.opened_monotonic_ns);
  if (made && !rings.home.empty()) {
    shared_rings_ = SharedRings::Make(rings, identity.writer, directory_path_);
    if (shared_rings_ != nullptr) identity.rings = shared_rings_->path();
  }
  if (directory_path_.starts_with('/')) identity.path = directory_path_;
  made = made && WriteIdentity(identity);
  if (!made) *message = "cannot write to the spool directory " + root + ": " + std::strerror(errno);
  return made;
}

bool SpoolWriter::MapFile(const char* name, std::size_t bytes, void** mapped) {
  const UniqueFd file = NewFile(directory_, name);
  if (file.get() >= 0) *mapped = MapNewFile(file.get(), bytes);
  return *mapped != nullptr;
}

SpoolWriter::Around SpoolWriter::OpenAround() const {
  const bool is_inner = is_worker();
  const SharedRings* rings = is_inner ? around_.shared_rings.get() : shared_rings_.get();
  Around around;
  around.path = is_inner ? around_.path : directory_path_;
  around.directory = (is_inner ? around_.directory : directory_).Reopen(around.path);
  if (rings != nullptr) around.shared_rings = rings->Reopen();
  around.pid = is_inner ? around_.pid : header_->pid;
  return around;
}

bool SpoolWriter::MakeWorkerFiles(const spool::WriterHeader& parent) {
  void* header = nullptr;
  void* names = nullptr;
  const bool is_mapped = MapFile(spool::kNamesFile, spool::kNamesBytesMax, &names) &&
                         MapFile(spool::kHeaderDraftFile, spool::kPageBytes, &header);
  names_ = static_cast<std::byte*>(names);
  if (!is_mapped) return false;
  FormatHeader(header, getpid(), MonotonicNs());
  // Until an agent sees the worker, what it wished of the parent holds.
  header_->control.store(parent.control.load(std::memory_order_relaxed));
  return renameat(directory_.get(), spool::kHeaderDraftFile, directory_.get(),
                  spool::kHeaderFile) == 0;
}

// While its byte is held nobody else does; where this fails too, an agent does it later.
void SpoolWriter::Withdraw() {
  for (const char* name : {spool::kNamesFile, spool::kHeaderDraftFile, spool::kHeaderFile}) {
    unlinkat(directory_.get(), name, 0);
  }
  rmdir(directory_path_.c_str());
  if (shared_rings_ != nullptr) shared_rings_->Remove();
}

void SpoolWriter::FormatHeader(void* mapped, std::int64_t pid, std::uint64_t opened_ns) {
  header_ = {new (mapped) spool::WriterHeader{},
             [](spool::WriterHeader* header) { munmap(header, spool::kPageBytes); }};
  std::memcpy(header_->magic, spool::kHeaderMagic, sizeof(header_->magic));
  header_->format_version = spool::kFormatVersion;
  header_->pid = static_cast<std::uint32_t>(pid);
  header_->opened_ns = opened_ns;
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
  spec.worker = worker_;
  std::unique_ptr<Ring> ring = MapWithinMemory(spec, bytes);
  if (ring == nullptr) {
    ring_bytes_.fetch_sub(bytes);
  } else {
    header_->ring_count.store(spec.ring + 1, std::memory_order_release);
  }
  return ring;
}

// Where there is a limit, one process of the root after the other looks and takes.
std::unique_ptr<Ring> SpoolWriter::MapWithinMemory(const Ring::Spec& spec, std::size_t bytes) {
  if (room_pace_.IsKnownTooLittle(bytes, MonotonicNs())) return nullptr;
  std::uint64_t room = MemoryRoom().Bytes();
  std::optional<RoomTurn> turn;
  if (room != MemoryRoom::kUnlimited && MemoryRoom::IsFor(room, bytes) && !is_memory_only()) {
    const std::string& writer = is_worker() ? around_.path : directory_path_;
    turn.emplace(writer.substr(0, writer.rfind('/')));
    room = MemoryRoom().Bytes();
  }
  room_pace_.Saw(room, bytes, MonotonicNs());
  return MemoryRoom::IsFor(room, bytes) ? MapRing(spec) : nullptr;
}

std::unique_ptr<Ring> SpoolWriter::MapRing(const Ring::Spec& spec) {
  if (is_memory_only()) return Ring::MapAnonymous(spec);
  if (shared_rings_ != nullptr && shared_rings_->HasRoom()) {
    if (auto ring = MapRingFile(shared_rings_->directory(), spec)) return ring;
  }
  return MapRingFile(directory_, spec);
}

std::unique_ptr<Ring> SpoolWriter::MapRingFile(const UniqueFd& directory, const Ring::Spec& spec) {
  if (directory.get() < 0) return nullptr;
  const std::string name = spool::kRingFilePrefix + std::to_string(spec.ring);
  const UniqueFd file = NewFile(directory, name);
  if (file.get() < 0) return nullptr;
  std::unique_ptr<Ring> ring = Ring::Map(file.get(), spec);
  // A file of no ring keeps room that others need, and its number.
  if (ring == nullptr) unlinkat(directory.get(), name.c_str(), 0);
  return ring;
}

void SpoolWriter::FreeRing(std::unique_ptr<Ring> ring) { ring_bytes_.fetch_sub(ring->bytes()); }

}  // namespace stepwell::recorder
