// CallGroups: calls of one key that come while others of it are under way wait, and are then done together, on the
// thread of the one that waited longest: many small transactions that would hold the same lock one after the other
// become few. One that comes alone waits for nobody. Thread-safe.
//
//   struct Call { const Question* question; absl::StatusOr<Answer> answer; };
//   CallGroups<TrialId, Call> groups({.count_max = 100});
//   groups.Do(trial_id, call, [&](const auto& take) {
//     auto connection = Borrow();   // whoever comes meanwhile goes along
//     for (Call* each : take()) ... // answers all
//   });
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "base/check.h"

namespace stepwell {

template <typename Key, typename Call>
class CallGroups {
 public:
  using Group = std::vector<Call*>;
  struct Options {
    std::size_t count_max = 1;  // of a group
    // Whether `next` may be done with `group`, which is not empty; null = always. Who may not stays in its place.
    std::function<bool(std::span<Call* const> group, const Call& next)> fits = nullptr;
  };
  using Take = std::function<Group()>;

  // REQUIRES: options.count_max > 0.
  explicit CallGroups(Options options) : options_(std::move(options)) {
    STEPWELL_CHECK(options_.count_max > 0);
  }

  // Returns once `call` was done. `act` runs on this thread or, where others do it, not at all; of one key one at a
  // time. It gets ready, then takes its group, with `call` first in it, once, and answers all of it.
  void Do(const Key& key, Call& call, const std::function<void(const Take&)>& act)
      ABSL_LOCKS_EXCLUDED(mu_) {
    Waiting self{.call = &call};
    if (!Join(key, self)) {
      self.woken.WaitForNotification();
      if (!self.leads) return;
    }
    std::vector<Waiting*> taken;
    act([&] {
      taken = TakeGroup(key);
      Group calls;
      for (const Waiting* each : taken) calls.push_back(each->call);
      return calls;
    });
    STEPWELL_CHECK(!taken.empty() && taken.front() == &self);
    WakeNext(key);
    for (Waiting* each : taken) {
      if (each != &self) each->woken.Notify();
    }
  }

  // Of all keys, with those that get ready.
  std::size_t waiting_count() const ABSL_LOCKS_EXCLUDED(mu_) {
    std::size_t count = 0;
    absl::MutexLock lock(&mu_);
    for (const auto& [key, line] : lines_) count += line.size();
    return count;
  }

 private:
  struct Waiting {
    Call* call;
    bool leads = false;  // written before it is woken
    absl::Notification woken = {};
  };
  // Whose group is under way, and who waits for that; the first of them leads the next group.
  using Line = std::deque<Waiting*>;

  // Whether nobody of the key is under way: then it leads.
  bool Join(const Key& key, Waiting& self) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    const auto [line, is_new] = lines_.try_emplace(key);
    line->second.push_back(&self);
    return is_new;
  }

  std::vector<Waiting*> TakeGroup(const Key& key) ABSL_LOCKS_EXCLUDED(mu_) {
    std::vector<Waiting*> taken;
    Group calls;
    Line left;
    absl::MutexLock lock(&mu_);
    Line& line = lines_.at(key);
    for (Waiting* each : line) {
      const bool goes_along =
          calls.empty() || (calls.size() < options_.count_max &&
                            (!options_.fits || options_.fits(calls, *each->call)));
      if (!goes_along) {
        left.push_back(each);
        continue;
      }
      taken.push_back(each);
      calls.push_back(each->call);
    }
    line.swap(left);
    return taken;
  }

  void WakeNext(const Key& key) ABSL_LOCKS_EXCLUDED(mu_) {
    Waiting* next = nullptr;
    {
      absl::MutexLock lock(&mu_);
      const auto line = lines_.find(key);
      if (line->second.empty()) {
        lines_.erase(line);
        return;
      }
      next = line->second.front();
      next->leads = true;
    }
    next->woken.Notify();
  }

  const Options options_;
  mutable absl::Mutex mu_;
  std::map<Key, Line> lines_ ABSL_GUARDED_BY(mu_);
};

}  // namespace stepwell
