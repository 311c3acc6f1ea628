// WriterFinder: which directories below a format directory are writers that are not served yet.
// Directories are opened without following links; what is no writer is told once and left alone.
// Confined to the agent's loop.
//
// Whoever owns the directory may fill it with names: a look reads some thousand and opens some hundred
// of what it does not know, and the next one goes on there. Each is come to in its turn, however many
// are before it, and what is looked through is then looked through again.
//
//   finder.Refill();                                           // each visit
//   for (FoundWriter& found : finder.FindNew()) Serve(std::move(found));
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/steady_time.h"
#include "client/agent/directory_listing.h"
#include "client/agent/directory_watch.h"
#include "client/agent/file_descriptor.h"
#include "client/agent/waiting_writers.h"
#include "client/agent/writer_identity.h"

namespace stepwell::agent {

struct FoundWriter {
  // Its name in the format directory.
  std::string name;
  FileDescriptor directory;
  WriterIdentity identity;
  // It was served before, and set aside.
  bool is_back = false;
};

// Makes a writer's directory, named after it, with its writer.json.
absl::StatusOr<FoundWriter> MakeWriterDirectory(int format_directory, WriterIdentity identity);

class WriterFinder {
 public:
  // `format_directory` outlives the finder. Writers belong to `owner`; so many have places at once.
  explicit WriterFinder(int format_directory, uid_t owner = geteuid(), std::size_t count_max = 1024)
      : format_directory_(format_directory), owner_(owner), count_max_(count_max) {}

  // Of names that one look reads, and of directories that all looks until the next Refill open.
  static constexpr std::size_t kNamesReadMax = 4096;
  static constexpr std::size_t kOpenedMax = 256;

  // Each writer is given once, until Forget. One without writer.json is not a writer yet. Where there
  // are more than places, the living come first and the dead wait.
  std::vector<FoundWriter> FindNew();
  void Refill() { openings_left_ = kOpenedMax; }
  // The next FindNew looks through the whole directory, whatever it looks like and however long that
  // takes: an agent that is about to leave must miss nobody.
  void LookAgain() { is_thorough_ = true; }
  // The directory may have changed since it was listed. Costs little.
  bool MayHaveNew();
  // Once all that was there at the begin has been looked at.
  bool has_looked_through() const { return has_looked_through_; }
  // The directory may be found again: it was left, or serving it failed.
  void Forget(const std::string& name) {
    known_.erase(name);
    look_again_ = true;
  }
  // The directory is gone.
  void Drop(const std::string& name) {
    known_.erase(name);
    waiting_.Drop(name);
  }
  // Made by this agent itself.
  void Know(const std::string& name) { known_.insert(name); }

  // Its place is another's; it is given again once there is room, unless it was delivered.
  void SetAside(const std::string& name, AsideWriter writer) {
    known_.erase(name);
    waiting_.Add(name, writer);
    is_dear_ = false;
  }
  // So many places are wanted by those that should not wait: living ones, and dead ones of which
  // nothing is drained yet.
  std::size_t places_wanted() const { return living_waiting_count_ + waiting_.new_count(); }
  bool is_full() const { return known_.size() >= count_max_; }
  std::size_t count_max() const { return count_max_; }
  const WaitingWriters& waiting() const { return waiting_; }

 private:
  // Of one time through the directory, which may take many looks: names are listed, then looked at,
  // and where there are too many to be held, listed on.
  struct Pass {
    DirectoryListing listing;
    bool listed = false;
    // That were neither served nor waiting as they were listed, and how many of them were looked at.
    std::vector<std::string> unknown = {};
    std::size_t looked_count = 0;
    // There are more than places: the living come first.
    bool is_crowded = false;
    std::size_t living_waiting_count = 0;
  };
  void Begin();
  // True once it is through.
  bool GoOn(std::vector<FoundWriter>& found);
  // True once all are listed, or as many as can be held.
  bool List();
  // True once all that are listed were looked at.
  bool LookThrough(std::vector<FoundWriter>& found);
  void LookAt(const std::string& name, std::vector<FoundWriter>& found);
  void Wait(const std::string& name);
  void End();
  enum class Seen { kNever, kBefore };
  void Give(const std::string& name, Seen seen, std::vector<FoundWriter>& found);
  void GiveWaiting(std::vector<FoundWriter>& found);
  // Once a minute.
  void LogCrowded();

  const int format_directory_;
  const uid_t owner_;
  const std::size_t count_max_;
  absl::flat_hash_set<std::string> known_;
  WaitingWriters waiting_;
  std::size_t living_waiting_count_ = 0;
  std::optional<Pass> pass_;
  bool has_looked_through_ = false;
  bool is_thorough_ = false;
  std::size_t openings_left_ = kOpenedMax;
  // What was listed may give more: a writer without its writer.json yet, one that found no room.
  bool look_again_ = true;
  DirectoryWatch watch_;
  // Where more living writers than places, or names without end, make each listing dear.
  std::chrono::steady_clock::time_point listed_at_ = {};
  bool is_dear_ = false;
  SteadyTime crowded_logged_;
};

}  // namespace stepwell::agent
