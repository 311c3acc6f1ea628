// SpoolWriter is the writer's directory (spool_format.h), or that of a forked worker within it: it
// makes the files, holds the lock that says the process lives, and makes rings. Without a usable
// directory it stands for the same in memory.
//
//   std::string why;
//   auto spool = SpoolWriter::Create("/dev/shm/run-1", identity, SharedRingPlace(), &why);
//   if (spool == nullptr) spool = SpoolWriter::CreateInMemory(identity);
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "client/recorder/src/identity.h"
#include "client/recorder/src/ring.h"
#include "client/recorder/src/room_pace.h"
#include "client/recorder/src/shared_rings.h"
#include "client/recorder/src/spool_format.h"
#include "client/recorder/src/unique_fd.h"

namespace stepwell::recorder {

class SpoolWriter {
 public:
  // Blocks on the file system. On failure null, with the reason and the remedy in `message`.
  static std::unique_ptr<SpoolWriter> Create(const std::string& root, Identity identity,
                                             const SharedRingPlace& rings, std::string* message);
  // That of a forked child of the process that made this one, be it a worker itself. The rest of
  // this object is the parent's and must not be used by the child. Blocks on the file system.
  std::unique_ptr<SpoolWriter> CreateWorker(std::string* message) const;
  // Null only when there is no memory.
  static std::unique_ptr<SpoolWriter> CreateInMemory(const Identity& identity);
  ~SpoolWriter() { UnmapNames(); }
  SpoolWriter(const SpoolWriter&) = delete;
  SpoolWriter& operator=(const SpoolWriter&) = delete;

  bool is_memory_only() const { return directory_path_.empty(); }
  const std::string& directory_path() const { return directory_path_; }
  bool is_worker() const { return worker_ != spool::kNoWorker; }
  // A worker that outlived the process that opened the writer, as a daemon does.
  bool IsOrphan() const;
  // A worker of a process that is gone, or that has closed its recorder and lives on.
  bool IsUnattended() const;
  // No other process of the writer lives: an agent may have ended it before this worker came. One
  // that is not alone now is seen by every agent that ends it later.
  bool IsAlone() const;
  // Of a worker: the agent may take nothing more of the writer that it joined.
  bool HasWriterEnded() const;
  // Takes back what CreateWorker did.
  void Withdraw();
  spool::WriterHeader& header() { return *header_; }
  // Mapped for as long as somebody has it.
  std::shared_ptr<const spool::WriterHeader> shared_header() const { return header_; }
  std::span<std::byte> names() { return {names_, spool::kNamesBytesMax}; }
  void UnmapNames();

  // A ring of `spec` with the next number, or null: no room, in the file system or in the memory of a
  // cgroup, no directory any more, or the process's share of kProcessRingBytesMax is used up. Blocks on
  // the file system and, within the memory of a cgroup, on others of the root that make one. Thread-safe.
  std::unique_ptr<Ring> MakeRing(Ring::Spec spec);
  // Gives a ring's share back. Thread-safe.
  void FreeRing(std::unique_ptr<Ring> ring);

  // Opens again what the program closed, and takes the lock's byte again: a program that closes every
  // descriptor, or any of the lock's file, has let go of it. A few system calls. For the thread that
  // makes rings.
  void KeepFiles();
  // Lets go of the lock: from here on the writer counts as dead.
  void Unlock();
  // No ring is made any more, and nobody joins.
  void CloseDirectories();

 private:
  // The writer around a worker, for the workers that it may have itself.
  struct Around {
    std::string path;
    UniqueFd directory;
    std::unique_ptr<SharedRings> shared_rings;
    std::uint32_t pid = 0;
  };

  SpoolWriter() = default;
  bool MakeFiles(const std::string& root, Identity identity, const SharedRingPlace& rings,
                 std::string* message);
  Around OpenAround() const;
  bool MakeWorkerFiles(const spool::WriterHeader& parent);
  bool MapFile(const char* name, std::size_t bytes, void** mapped);
  bool WriteIdentity(const Identity& identity);
  void FormatHeader(void* mapped, std::int64_t pid, std::uint64_t opened_ns);
  std::unique_ptr<Ring> MapWithinMemory(const Ring::Spec& spec, std::size_t bytes);
  std::unique_ptr<Ring> MapRing(const Ring::Spec& spec);
  static std::unique_ptr<Ring> MapRingFile(const UniqueFd& directory, const Ring::Spec& spec);

  // Constant after construction.
  std::string directory_path_;
  UniqueFd directory_;
  std::unique_ptr<SharedRings> shared_rings_;  // null = none
  std::uint32_t worker_ = spool::kNoWorker;
  Around around_;               // of a worker
  mutable std::mutex locking_;  // of lock_, once it is taken
  UniqueFd lock_;
  std::shared_ptr<spool::WriterHeader> header_;
  std::byte* names_ = nullptr;

  std::atomic<std::size_t> ring_bytes_{0};
  // Held while a ring is made, file system included: a ring must have its number when it is
  // counted. Only threads that wait for their first ring meet here.
  std::mutex ring_making_;
  RoomPace room_pace_;  // guarded by ring_making_
};

}  // namespace stepwell::recorder
