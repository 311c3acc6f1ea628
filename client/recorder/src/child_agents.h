// ChildAgents: agents that became children of this process, although none was started as one: where
// the trial is the first process of its container, or a subreaper, whoever loses his parent is given
// to it. One that dies stays a zombie until it is waited for, and that is nobody's but ours.
//
//   agents.See(holder);   // of the agent's lock; 0 = nobody, or not known
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace stepwell::recorder {

class ChildAgents {
 public:
  // Remembers who serves and is a child of this process; waits for those that did and are dead. Never
  // for any other child of the trial's: one that has their number by now began at another time.
  void See(pid_t holder);

 private:
  struct Known {
    pid_t pid = 0;
    std::uint64_t start_ticks = 0;  // since boot: of this number only one process began then
  };
  static bool IsOver(const Known& agent);

  std::vector<Known> known_;
};

}  // namespace stepwell::recorder
