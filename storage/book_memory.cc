#include "storage/book_memory.h"

#include <iterator>
#include <utility>

namespace stepwell {
namespace {

// Of its places in the memory.
constexpr std::size_t kPlaceBytes = 192;

}  // namespace

std::optional<RememberedBook> BookMemory::Find(TrialId trial_id) {
  const auto found = places_.find(trial_id);
  if (found == places_.end()) return std::nullopt;
  held_.splice(held_.begin(), held_, found->second);
  return found->second->remembered;
}

void BookMemory::Note(TrialId trial_id, RememberedBook book) {
  const auto found = places_.find(trial_id);
  if (found != places_.end()) Forget(found->second);
  const std::size_t bytes = BytesOf(*book.book) + kPlaceBytes;
  if (bytes > bytes_max_) return;
  while (bytes_ + bytes > bytes_max_) Forget(std::prev(held_.end()));
  held_.push_front({trial_id, std::move(book), bytes});
  places_[trial_id] = held_.begin();
  bytes_ += bytes;
}

void BookMemory::Clear() {
  places_.clear();
  held_.clear();
  bytes_ = 0;
}

void BookMemory::Forget(std::list<Held>::iterator held) {
  bytes_ -= held->bytes;
  places_.erase(held->trial_id);
  held_.erase(held);
}

}  // namespace stepwell
