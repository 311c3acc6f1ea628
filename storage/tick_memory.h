// TickMemory: decoded rows of ticks that reads have met, for those after them: what never changes need not
// be asked and decoded again. Bounded; what is longest out of use goes first. Thread-compatible: callers
// lock.
//
//   memory.Note(key, ticks, bytes);
//   if (const auto known = memory.Find(key)) ...
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "storage/tick_key.h"

namespace stepwell {

template <typename Ticks>
class TickMemory {
 public:
  using Shared = std::shared_ptr<const Ticks>;

  explicit TickMemory(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  // Null = unknown.
  Shared Find(const TickKey& key) {
    const auto found = places_.find(key);
    if (found == places_.end()) return nullptr;
    held_.splice(held_.begin(), held_, found->second);
    return found->second->ticks;
  }

  // `bytes` is about what it takes; more than all may take is not kept.
  void Note(const TickKey& key, Shared ticks, std::size_t bytes) {
    if (bytes > bytes_max_ || places_.contains(key)) return;
    while (bytes_ + bytes > bytes_max_) LetOneGo();
    held_.push_front({key, std::move(ticks), bytes});
    places_[key] = held_.begin();
    bytes_ += bytes;
  }

  void Clear() {
    places_.clear();
    held_.clear();
    bytes_ = 0;
  }

  std::size_t bytes() const { return bytes_; }

 private:
  struct Held {
    TickKey key;
    Shared ticks;
    std::size_t bytes = 0;
  };

  void LetOneGo() {
    bytes_ -= held_.back().bytes;
    places_.erase(held_.back().key);
    held_.pop_back();
  }

  const std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  std::list<Held> held_;  // used last first
  absl::flat_hash_map<TickKey, typename std::list<Held>::iterator> places_;
};

}  // namespace stepwell
