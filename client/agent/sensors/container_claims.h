// ContainerClaims: which containers this agent measures for a trial, so that two agents in one
// container (two users', two spool roots) do not store it twice: who has the container's name in the
// kernel's abstract socket names is the one, and the kernel frees it when he ends. Any process of the
// network namespace can have it, so it counts as root's and as that of the agent's own user alone: beside
// another user the agent measures, too. Who is not given a container says so (ContainerGroups). Agents that
// share a container but no network namespace do not see each other's. Thread-safe.
//
//   ContainerClaims claims("master:7817/default/run");
//   if (claims.Hold("3f2a9c01d7be", now)) ...
//   claims.GiveBack(now);      // what was not asked for of late
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/agent/file_descriptor.h"

namespace stepwell::agent {

class ContainerClaims {
 public:
  // Between two tries for a name that one does not have.
  static constexpr absl::Duration kTryInterval = absl::Seconds(1);
  // One that was not asked for so long is given back.
  static constexpr absl::Duration kKeptFor = absl::Seconds(5);
  // Each is a descriptor. Further ones are not measured.
  static constexpr std::size_t kCountMax = 64;
  // Without the zero that they begin with.
  static constexpr std::size_t kNameBytesMax = 107;

  // `trial` as all agents of a machine write it.
  explicit ContainerClaims(std::string trial) : trial_(std::move(trial)) {}

  // Whether it is this agent's to measure. Where sockets are forbidden, or a stranger has the name, it is everybody's.
  bool Hold(const std::string& container, absl::Duration now) ABSL_LOCKS_EXCLUDED(mu_);
  // After all were asked for that are wanted now, however long ago they were before.
  void GiveBack(absl::Duration now) ABSL_LOCKS_EXCLUDED(mu_);
  // Held or tried for.
  std::size_t count() const ABSL_LOCKS_EXCLUDED(mu_);

  // The texts themselves where they fit, else 128 bits of them.
  static std::string NameOf(const std::string& trial, const std::string& container);

 private:
  struct Claim {
    bool held = false;
    // Where it is held, what has the name; else a connection to that.
    FileDescriptor socket;
    absl::Duration tried_at = -absl::InfiniteDuration();
    absl::Duration asked_at;
  };
  bool Try(const std::string& container, FileDescriptor& socket) const;

  const std::string trial_;
  mutable absl::Mutex mu_;
  std::map<std::string, Claim> claims_ ABSL_GUARDED_BY(mu_);
};

}  // namespace stepwell::agent
