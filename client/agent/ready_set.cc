#include "client/agent/ready_set.h"

#include <algorithm>

namespace stepwell::agent {

void ReadySet::MarkOne(Place& place) {
  place.due = -absl::InfiniteDuration();
  ++place.mark_count;
}

void ReadySet::Take(std::size_t place) {
  absl::MutexLock lock(&mu_);
  if (places_.size() <= place) places_.resize(place + 1);
  places_[place].is_taken = true;
  MarkOne(places_[place]);
}

void ReadySet::Leave(std::size_t place) {
  absl::MutexLock lock(&mu_);
  if (place < places_.size()) places_[place].is_taken = false;
}

void ReadySet::Mark(std::size_t place) {
  absl::MutexLock lock(&mu_);
  if (place < places_.size()) MarkOne(places_[place]);
}

void ReadySet::MarkAll() {
  absl::MutexLock lock(&mu_);
  for (Place& place : places_) MarkOne(place);
}

std::optional<ReadySet::Due> ReadySet::FindDue(std::size_t begin, std::size_t count,
                                               absl::Duration now) const {
  absl::MutexLock lock(&mu_);
  if (begin >= places_.size()) begin = 0;
  for (std::size_t left = std::min(count, places_.size()); left > 0; --left) {
    const Place& place = places_[begin];
    if (place.is_taken && place.due <= now) return Due{begin, place.mark_count};
    if (++begin == places_.size()) begin = 0;
  }
  return std::nullopt;
}

void ReadySet::Rest(const Due& due, absl::Duration until) {
  absl::MutexLock lock(&mu_);
  Place& place = places_[due.place];
  if (place.mark_count == due.mark_count) place.due = until;
}

std::size_t ReadySet::place_count() const {
  absl::MutexLock lock(&mu_);
  return places_.size();
}

}  // namespace stepwell::agent
