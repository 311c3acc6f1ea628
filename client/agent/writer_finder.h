// WriterFinder: which directories below a format directory are writers that are not served yet.
// Directories are opened without following links; what is no writer is told once and left alone.
// Confined to the agent's loop.
//
//   for (FoundWriter& found : finder.FindNew()) Serve(std::move(found));
#pragma once

#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "client/agent/file_descriptor.h"
#include "client/agent/writer_identity.h"

namespace stepwell::agent {

struct FoundWriter {
  // Its name in the format directory.
  std::string name;
  FileDescriptor directory;
  WriterIdentity identity;
};

// Makes a writer's directory, named after it, with its writer.json.
absl::StatusOr<FoundWriter> MakeWriterDirectory(int format_directory, WriterIdentity identity);

class WriterFinder {
 public:
  // `format_directory` outlives the finder. Writers belong to `owner`; so many are given out at once.
  explicit WriterFinder(int format_directory, uid_t owner = geteuid(), std::size_t count_max = 1024)
      : format_directory_(format_directory), owner_(owner), count_max_(count_max) {}

  // Each writer is given once, until Forget. One without writer.json is not a writer yet.
  std::vector<FoundWriter> FindNew();
  // The next FindNew lists the directory, whatever it looks like.
  void LookAgain() { look_again_ = true; }
  // The directory may be found again: it was left, or serving it failed.
  void Forget(const std::string& name) {
    known_.erase(name);
    look_again_ = true;
  }
  // The directory is gone.
  void Drop(const std::string& name) { known_.erase(name); }
  // Made by this agent itself.
  void Know(const std::string& name) { known_.insert(name); }

 private:
  // Listing costs more than all else of an idle visit.
  bool MayHaveNew();
  void List(std::vector<FoundWriter>& found);
  // Once a minute.
  void LogCrowded();

  const int format_directory_;
  const uid_t owner_;
  const std::size_t count_max_;
  absl::flat_hash_set<std::string> known_;
  // What was listed may give more: a writer without its writer.json yet, one that found no room.
  bool look_again_ = true;
  // The directory's time of change before the last listing.
  timespec changed_ = {};
  absl::Time crowded_logged_ = absl::InfinitePast();
};

}  // namespace stepwell::agent
