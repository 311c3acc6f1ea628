// AgentStarter sees to it that an agent serves this process's spool root: it asks the root's lock
// and starts an agent where nobody holds it. All ranks of a machine do so at once; the lock decides
// which agent stays, the others end.
//
// Look is for one thread at a time: the maintenance thread, and after HandOver the one that closes.
// The rest is thread-safe.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "client/recorder/src/agent_launch.h"
#include "client/recorder/src/child_agents.h"
#include "client/recorder/src/open_wishes.h"
#include "client/recorder/src/spool_roots.h"
#include "client/recorder/src/start_pace.h"

namespace stepwell::recorder {

class AgentStarter {
 public:
  // For the spool below `root`, as it was found; null where the trial wants nobody started. Reads the environment.
  static std::unique_ptr<AgentStarter> Make(const OpenWishes& wishes, const SpoolRoot& root,
                                            const std::string& writer_path);
  // `writer_path`: the directory that is to be served; once it is gone no agent is started.
  AgentStarter(AgentLaunch launch, std::string writer_path);
  // The same in a forked child, for the spool that it shares with its parent.
  std::unique_ptr<AgentStarter> MakeAgain() const {
    return std::make_unique<AgentStarter>(launch_, writer_path_);
  }
  ~AgentStarter();
  AgentStarter(const AgentStarter&) = delete;
  AgentStarter& operator=(const AgentStarter&) = delete;

  // Looks if a look is due, starts an agent if there is none, reaps what it launched. A few system
  // calls, four times a second. Returns when the next look is due.
  std::chrono::milliseconds Look(std::uint64_t now_ns);

  // Until the first look of the maintenance thread is over, or `patience` is.
  void AwaitFirstLook(std::chrono::milliseconds patience) const;
  // Called while the maintenance thread may be looking, which starts nothing any more. False: it is
  // caught in a start, by a hung file server under the agent's program; nobody may look again, nor
  // wait for that thread.
  [[nodiscard]] bool HandOver(std::chrono::milliseconds patience);
  // By the thread that looks from here on, at once.
  void TakeOver();

  // Since when no agent could be started; 0 = one is there, or may still come.
  std::uint64_t failed_since_ns() const { return failed_since_ns_.load(); }
  // Why no agent can be started, in words; empty while there is hope.
  std::string trouble() const;

 private:
  void LookNow(std::uint64_t now_ns);
  void Start(std::uint64_t now_ns);
  void Reap(std::uint64_t now_ns);
  void Tell(std::string trouble);

  const AgentLaunch launch_;
  const std::string writer_path_;

  // Of the thread that looks.
  StartPace pace_;
  std::uint64_t next_look_ns_ = 0;
  std::string program_;
  ChildAgents children_;
  pid_t launched_ = 0;  // 0 = none; ends as soon as the agent runs

  std::atomic<std::uint64_t> failed_since_ns_{0};
  std::atomic<bool> has_looked_{false};
  std::atomic<bool> is_starting_{false};
  std::atomic<bool> is_handed_over_{false};
  mutable std::mutex telling_;
  std::string trouble_;
};

}  // namespace stepwell::recorder
