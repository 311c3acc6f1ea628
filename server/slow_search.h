// SlowSearch: which chunk of a group it is that keeps a commit from ending in time. What ran out of time is halved until
// it is found; whoever is not meant passes on the way. A core: GroupCommitter asks it how much of the queue to take.
// Confined to the commit thread.
//
//   chunks = queue.Take(deadline, search.count_max());
//   ... search.Stored(n)
//   ... if (search.TimedOut(n)) queue.SetAside(...); else queue.PutBack(...);
#pragma once

#include <cstddef>
#include <limits>

namespace stepwell {

class SlowSearch {
 public:
  // Chunks that the next group may have.
  std::size_t count_max() const {
    if (suspect_count_ == 0) return std::numeric_limits<std::size_t>::max();
    return suspect_count_ == 1 ? 1 : suspect_count_ / 2;
  }
  bool is_on() const { return suspect_count_ > 0; }
  // So often a group is tried that runs out of time. Once may be anything.
  int tries() const { return suspect_count_ == 0 ? 2 : 1; }

  // The oldest `chunk_count` of the queue.
  void Stored(std::size_t chunk_count) {
    suspect_count_ = chunk_count < suspect_count_ ? suspect_count_ - chunk_count : 0;
  }
  // As often as it may. True: it is found, the only one that was tried.
  [[nodiscard]] bool TimedOut(std::size_t chunk_count) {
    suspect_count_ = chunk_count > 1 ? chunk_count : 0;
    return chunk_count == 1;
  }

 private:
  // Of the oldest in the queue; one of them is slow, as far as is known. 0 = nothing is looked for.
  std::size_t suspect_count_ = 0;
};

}  // namespace stepwell
