#include "storage/progress_book.h"

#include "base/check.h"

namespace stepwell {

void ProgressBook::Begin(std::int64_t number) {
  STEPWELL_CHECK(number > 0);
  stands_.clear();
  number_ = number;
}

void ProgressBook::End() {
  stands_.clear();
  number_ = 0;
}

bool ProgressBook::Holds(std::int64_t newest_number) {
  if (number_ > 0 && number_ == newest_number) return true;
  End();
  return false;
}

std::optional<std::uint64_t> ProgressBook::Find(const Key& writer, std::uint64_t generation) const {
  const auto found = stands_.find(writer);
  if (found == stands_.end() || found->second.generation != generation) return std::nullopt;
  return found->second.committed_sequence;
}

void ProgressBook::Note(const Key& writer, std::uint64_t generation,
                        std::uint64_t committed_sequence) {
  if (!is_open()) return;
  if (stands_.size() >= writers_max_ && !stands_.contains(writer)) stands_.clear();
  stands_[writer] = {generation, committed_sequence};
}

}  // namespace stepwell
