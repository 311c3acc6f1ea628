#include "client/agent/ended_samplers.h"

#include <utility>

namespace stepwell::agent {

void EndedSamplers::Add(std::string name, std::unique_ptr<ServedWriter> served, Keep keep) {
  by_name_[std::move(name)] = {std::move(served), keep};
  List();
}

void EndedSamplers::Tend(absl::Duration now) {
  for (auto& [name, ended] : by_name_) {
    ended.served->Tend();
    if (ended.served->done() && ended.done_at == absl::InfiniteDuration()) ended.done_at = now;
  }
}

std::vector<std::string> EndedSamplers::TakeOld(absl::Duration now, absl::Duration age) {
  std::vector<std::string> taken;
  std::erase_if(by_name_, [&](const auto& entry) {
    const Ended& ended = entry.second;
    if (ended.keep == Keep::kForNextAgent) return false;
    if (ended.done_at == absl::InfiniteDuration() || now - ended.done_at < age) return false;
    taken.push_back(entry.first);
    return true;
  });
  if (!taken.empty()) List();
  return taken;
}

std::vector<std::pair<std::string, const ServedWriter*>> EndedSamplers::ThatMayWait() const {
  std::vector<std::pair<std::string, const ServedWriter*>> may_wait;
  for (const auto& [name, ended] : by_name_) {
    if (ended.served->may_wait()) may_wait.emplace_back(name, ended.served.get());
  }
  return may_wait;
}

void EndedSamplers::Remove(const std::string& name) {
  by_name_.erase(name);
  List();
}

void EndedSamplers::List() {
  all_.clear();
  for (const auto& [name, ended] : by_name_) all_.push_back(ended.served.get());
}

}  // namespace stepwell::agent
