// SimDisk: the disk under the agents of a simulated run. Files are real ones, in memory; the calls of
// the C library that change them are this test's own (sim_disk.cc), so that a disk can be full, fail a
// sync, stop in the middle of a write as a killed process leaves it, and lose what was not synced.
// One at a time; confined to its run.
//
//   disk.StopAfter(3);            // the agent dies in its third change from now
//   agent.Visit();
//   if (disk.stopped()) ...
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/simulation/chance.h"

namespace stepwell::simulation {

class SimDisk {
 public:
  // `chance` outlives this. `root` is made anew, and removed.
  SimDisk(std::string root, Chance& chance);
  ~SimDisk();
  SimDisk(const SimDisk&) = delete;
  SimDisk& operator=(const SimDisk&) = delete;

  const std::string& root() const { return root_; }

  void set_full(bool full) { full_ = full; }
  bool full() const { return full_; }
  // Of syncs; what one that failed had to write is never written by a later one.
  void set_sync_failure(double probability) { sync_failure_ = probability; }

  // The change after `count` others happens in part, and nothing after it: its process is dead.
  void StopAfter(std::uint64_t count) { stop_after_ = count; }
  void Stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }
  // Another process.
  void GoOn();

  // Writes that happened as a whole so far: their numbers are 1 to this.
  std::uint64_t write_count() const { return write_count_; }
  // Those below `folder`, by number, whose bytes no sync was asked for since. What a sync that failed had to write is not among them.
  std::set<std::uint64_t> UnsyncedWrites(const std::string& folder) const;

  // What lies below `folder` is as a machine finds it that lost its power. REQUIRES: nobody has it open.
  void LosePower(const std::string& folder);

  // A copy of `folder` is put aside; and put back in its place, on the disk as it was then. REQUIRES: likewise
  // for SetBack.
  void PutAside(const std::string& folder);
  void SetBack(const std::string& folder);

  // --- what the C library's calls became
  int Open(int directory, const char* name, int flags, mode_t mode);
  ssize_t Write(int fd, const void* bytes, std::size_t size, off_t offset);
  int Truncate(int fd, off_t size);
  int Sync(int fd);
  int Unlink(int directory, const char* name, int flags);
  int Rename(int from_directory, const char* from, int to_directory, const char* to);

 private:
  struct Range {
    off_t begin = 0;
    off_t end = 0;
  };
  struct File {
    off_t durable_bytes = 0;
    bool entry_durable = false;
    std::vector<Range> lost;  // a sync of it failed
    // By their numbers, since the last sync.
    std::map<std::uint64_t, Range> unsynced = {};
  };

  // Whether this change may happen as a whole; where not, whether in part.
  enum class May { kAll, kPart, kNothing };
  May Change();
  void LosePowerOf(const std::string& path);
  std::string AsideOf(const std::string& folder) const;

  const std::string root_;
  Chance& chance_;
  bool full_ = false;
  double sync_failure_ = 0;
  bool stopped_ = false;
  std::uint64_t stop_after_ = UINT64_MAX;
  std::uint64_t write_count_ = 0;
  std::map<ino_t, File> files_;
};

}  // namespace stepwell::simulation
