// PathTable is a thread's own memory of (enclosing path, scope) -> path, so that a scope that was
// seen before costs a few loads and no lock. Confined to the recording thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace stepwell::recorder {

class PathTable {
 public:
  PathTable() = default;
  PathTable(const PathTable&) = delete;
  PathTable& operator=(const PathTable&) = delete;

  // 0 = not known yet.
  std::uint32_t Find(std::uint32_t parent, std::uint32_t scope) const {
    const std::uint64_t key = Key(parent, scope);
    for (std::size_t at = Hash(key);; ++at) {
      const Slot& slot = slots_[at & mask_];
      if (slot.key == key) return slot.path;
      if (slot.key == 0) return 0;
    }
  }

  // Whose innermost scope it is; 0 = not known. One load: hooks ask it at each call that they time.
  std::uint32_t ScopeOf(std::uint32_t path) const {
    return path < scopes_.size() ? scopes_[path] : 0;
  }

  // Allocates when it grows. REQUIRES: path > 0, the pair is not known.
  void Add(std::uint32_t parent, std::uint32_t scope, std::uint32_t path) {
    if (2 * (std::size_t{count_} + 1) > slot_count()) Grow();
    Insert({Key(parent, scope), path});
    ++count_;
    if (path >= scopes_.size()) {
      scopes_.resize(std::max(std::size_t{path} + 1, 2 * scopes_.size()));
    }
    scopes_[path] = scope;
  }

 private:
  struct Slot {
    std::uint64_t key = 0;  // never 0 for a pair: scopes count from 1
    std::uint32_t path = 0;
  };

  static std::uint64_t Key(std::uint32_t parent, std::uint32_t scope) {
    return std::uint64_t{parent} << 32 | scope;
  }
  static std::size_t Hash(std::uint64_t key) {
    return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15u) >> 40);
  }

  std::size_t slot_count() const { return std::size_t{mask_} + 1; }

  void Insert(Slot slot) {
    std::size_t at = Hash(slot.key);
    while (slots_[at & mask_].key != 0) ++at;
    slots_[at & mask_] = slot;
  }

  void Grow() {
    const std::span<const Slot> old(slots_, slot_count());
    std::vector<Slot> grown(slot_count() * 2);
    slots_ = grown.data();
    mask_ = static_cast<std::uint32_t>(grown.size() - 1);
    for (const Slot& slot : old) {
      if (slot.key != 0) Insert(slot);
    }
    more_.swap(grown);
  }

  static constexpr std::size_t kFirstCount = 64;

  std::uint32_t mask_ = kFirstCount - 1;  // beside where the slots lie: Find reads both
  std::uint32_t count_ = 0;
  Slot* slots_ = first_.data();
  std::vector<std::uint32_t> scopes_;  // by path, which a process counts from 1; 0 = not known
  std::vector<Slot> more_;             // where the first ones do not suffice
  // Within the table, and so on its page, for as many as a training has.
  std::array<Slot, kFirstCount> first_{};
};

}  // namespace stepwell::recorder
