#include "server/memory_room.h"

#include "base/check.h"

namespace stepwell {
namespace {

// Whether somebody still waits.
constexpr absl::Duration kLookEach = absl::Milliseconds(200);

}  // namespace

std::optional<MemoryRoom::Place> MemoryRoom::Take(std::int64_t bytes,
                                                  const std::function<bool()>& goes_on) {
  std::uint64_t number = 0;
  const auto has_turn = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return *waiting_.begin() == number && FitsLocked(bytes);
  };
  {
    absl::MutexLock lock(&mu_);
    number = next_++;
    waiting_.insert(number);
  }
  while (goes_on()) {
    absl::MutexLock lock(&mu_);
    if (!mu_.AwaitWithTimeout(absl::Condition(&has_turn), kLookEach)) continue;
    waiting_.erase(number);
    bytes_ += bytes;
    return Place(this, bytes);
  }
  absl::MutexLock lock(&mu_);
  waiting_.erase(number);
  return std::nullopt;
}

std::optional<MemoryRoom::Place> MemoryRoom::TryTake(std::int64_t bytes) {
  absl::MutexLock lock(&mu_);
  if (!waiting_.empty() || !FitsLocked(bytes)) return std::nullopt;
  bytes_ += bytes;
  return Place(this, bytes);
}

MemoryRoom::Place MemoryRoom::Count(std::int64_t bytes) {
  absl::MutexLock lock(&mu_);
  bytes_ += bytes;
  return {this, bytes};
}

bool MemoryRoom::TryResize(Place& place, std::int64_t bytes) {
  absl::MutexLock lock(&mu_);
  const std::int64_t others = bytes_.load() - place.bytes_;
  const bool fits =
      bytes <= place.bytes_ || others == 0 || (!is_tight_ && others + bytes <= bytes_max_);
  if (fits) ResizeLocked(place, bytes);
  return fits;
}

void MemoryRoom::Resize(Place& place, std::int64_t bytes) {
  absl::MutexLock lock(&mu_);
  ResizeLocked(place, bytes);
}

void MemoryRoom::ResizeLocked(Place& place, std::int64_t bytes) {
  STEPWELL_CHECK(place.room_ == nullptr || place.room_ == this);
  bytes_ += bytes - place.bytes_;
  place.bytes_ = bytes;
  place.room_ = this;
}

void MemoryRoom::SetTight(bool is_tight) {
  absl::MutexLock lock(&mu_);
  is_tight_ = is_tight;
}

void MemoryRoom::GiveBack(std::int64_t bytes) {
  absl::MutexLock lock(&mu_);
  STEPWELL_CHECK(bytes <= bytes_.load());
  bytes_ -= bytes;
}

}  // namespace stepwell
