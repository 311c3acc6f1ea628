// SystemRoots: the users' roots below the one of a system agent, found as they appear. Each is its
// user's and hostile: what is a link, another user's, or open to others is told once and left alone.
// Confined to the agent's loop.
//
//   STEPWELL_ASSIGN_OR_RETURN(FileDescriptor directory, OpenSystemDirectory("/run/stepwell"));
//   SystemRoots roots(std::move(directory), clock);
//   for (SystemRoots::Found& found : roots.FindNew()) Serve(std::move(found));
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "client/agent/agent_lock.h"
#include "client/agent/file_descriptor.h"
#include "client/agent/file_owner.h"

namespace stepwell::agent {

// Opens (or makes) it: 01733, so that each user makes his own u<uid> and none sees another's.
absl::StatusOr<FileDescriptor> OpenSystemDirectory(const std::string& path);
// Its own format directory, which holds the lock that recorders ask, and OpenCaptureDirectory's.
absl::StatusOr<FileDescriptor> OpenSystemFormatDirectory(int system_directory);

// In that one, for a user of that name (u<uid>): what is captured of his ranks, until it is sent. The agent's own, so that nobody
// else leads it to another file, writes there or reads what is there.
absl::StatusOr<FileDescriptor> OpenCaptureDirectory(int system_format_directory,
                                                    const std::string& name);

class SystemRoots {
 public:
  // A user is a loop's visit of his writers, and a few descriptors.
  static constexpr std::size_t kRootsMax = 256;

  struct Found {
    std::string name;  // u<uid>
    FileOwner owner;
    FileDescriptor format_directory;
    // Of the user's root itself: an agent that the user started is let finish.
    AgentLock lock;
  };

  // `clock` outlives the roots.
  SystemRoots(FileDescriptor directory, const Clock& clock)
      : directory_(std::move(directory)), clock_(clock) {}

  // Looks at most once a second. Each is given once, until Forget.
  std::vector<Found> FindNew();
  void Forget(const std::string& name) { known_.erase(name); }

 private:
  absl::StatusOr<Found> Look(const std::string& name) const;
  void LogRefused(const std::string& name, const absl::Status& why);

  const FileDescriptor directory_;
  const Clock& clock_;
  absl::Duration looked_at_ = -absl::InfiniteDuration();
  std::set<std::string> known_;
  std::map<std::string, std::string> refused_;  // why, as told
};

}  // namespace stepwell::agent
