// MemoryRoom: how much may be held of something at one time, where what is to come waits for what is there to go: messages
// that are read, parsed, worked on. Who waits has its turn in the order of coming, so that no large one starves behind small
// ones; one that is larger than all goes alone. Nothing is locked while a place is held. Thread-safe.
//
//   std::optional<MemoryRoom::Place> place = room.Take(bytes, [&] { return !ended(); });
//   if (!place) return;                    // ended
//   ...                                    // given back when it goes
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace stepwell {

class MemoryRoom {
 public:
  // The room outlives it.
  class Place {
   public:
    Place() = default;
    Place(Place&& other) noexcept
        : room_(std::exchange(other.room_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    Place& operator=(Place&& other) noexcept {
      Place taken(std::move(other));
      std::swap(room_, taken.room_);
      std::swap(bytes_, taken.bytes_);
      return *this;
    }
    ~Place() {
      if (room_ != nullptr) room_->GiveBack(bytes_);
    }
    std::int64_t bytes() const { return bytes_; }

   private:
    friend class MemoryRoom;
    Place(MemoryRoom* room, std::int64_t bytes) : room_(room), bytes_(bytes) {}
    MemoryRoom* room_ = nullptr;
    std::int64_t bytes_ = 0;
  };

  // REQUIRES: bytes_max > 0.
  explicit MemoryRoom(std::int64_t bytes_max) : bytes_max_(bytes_max) {}

  // Blocks while there is no room, in the order of coming. Nothing: `goes_on`, asked now and then, said no.
  std::optional<Place> Take(std::int64_t bytes, const std::function<bool()>& goes_on)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Nothing where it had to wait.
  std::optional<Place> TryTake(std::int64_t bytes) ABSL_LOCKS_EXCLUDED(mu_);
  // Of what is there whether there is room or not.
  Place Count(std::int64_t bytes) ABSL_LOCKS_EXCLUDED(mu_);
  // Makes it `bytes` in all, where they fit beside the others' or there are no others; false where it stays as it was. An empty
  // place becomes one of this room.
  [[nodiscard]] bool TryResize(Place& place, std::int64_t bytes) ABSL_LOCKS_EXCLUDED(mu_);
  // Of what is there whether there is room or not.
  void Resize(Place& place, std::int64_t bytes) ABSL_LOCKS_EXCLUDED(mu_);
  // While it is, one at a time is let in.
  void SetTight(bool is_tight) ABSL_LOCKS_EXCLUDED(mu_);

  std::int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  std::int64_t bytes_max() const { return bytes_max_; }

 private:
  bool FitsLocked(std::int64_t bytes) const ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return this->bytes() == 0 || (!is_tight_ && this->bytes() + bytes <= bytes_max_);
  }
  void GiveBack(std::int64_t bytes) ABSL_LOCKS_EXCLUDED(mu_);
  void ResizeLocked(Place& place, std::int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::int64_t bytes_max_;
  mutable absl::Mutex mu_;
  std::atomic<std::int64_t> bytes_ = 0;  // changed with mu_ held, read by anybody
  bool is_tight_ ABSL_GUARDED_BY(mu_) = false;
  // Who waits, by number.
  std::set<std::uint64_t> waiting_ ABSL_GUARDED_BY(mu_);
  std::uint64_t next_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace stepwell
