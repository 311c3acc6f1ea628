// EndedSamplers: writers of a machine's sampling that take no more ticks, of earlier agents,
// attempts and trials: only their rest and their Close are left to send. Confined to the agent's
// loop.
//
//   ended.Add(name, sampler->TakeServed());
//   ended.Tend();
//   for (const std::string& name : ended.TakeOld(now, age)) Remove(name);
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "client/agent/served_writer.h"

namespace stepwell::agent {

class EndedSamplers {
 public:
  // One whose trial goes on is left to the next agent, which reads in it where the ticks ended.
  enum class Keep { kNo, kForNextAgent };
  // `name` is that of its directory. It is closed already.
  void Add(std::string name, std::unique_ptr<ServedWriter> served, Keep keep = Keep::kNo);
  void Tend(absl::Duration now);
  // Those that are done for at least `age`: let go, and named.
  std::vector<std::string> TakeOld(absl::Duration now, absl::Duration age);

  // Those whose place another may have, by name.
  std::vector<std::pair<std::string, const ServedWriter*>> ThatMayWait() const;
  void Remove(const std::string& name);

  const std::vector<ServedWriter*>& all() const { return all_; }

 private:
  struct Ended {
    std::unique_ptr<ServedWriter> served;
    Keep keep = Keep::kNo;
    absl::Duration done_at = absl::InfiniteDuration();
  };
  void List();

  std::map<std::string, Ended> by_name_;
  std::vector<ServedWriter*> all_;  // of by_name_
};

}  // namespace stepwell::agent
