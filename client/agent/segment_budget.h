// SegmentBudget: how many segments the spools of one user's writers keep open. A user of a system agent
// may make a million small ones, and each is a descriptor that others need. Thread-safe: whoever reads a
// segment may be the last to let go of it.
//
//   segment->slot = SegmentSlot(budget);      // given back with the segment
//   if (budget->left() == 0) ...              // older ones are left out
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace stepwell::agent {

class SegmentBudget {
 public:
  explicit SegmentBudget(std::int64_t count_max) : left_(count_max) {}

  std::size_t left() const {
    return static_cast<std::size_t>(std::max<std::int64_t>(left_.load(), 0));
  }

 private:
  friend class SegmentSlot;
  // Below zero where what goes on needs one more: each spool has its newest.
  std::atomic<std::int64_t> left_;
};

// One segment's share.
class SegmentSlot {
 public:
  SegmentSlot() = default;
  // Null: nobody counts.
  explicit SegmentSlot(std::shared_ptr<SegmentBudget> budget) : budget_(std::move(budget)) {
    if (budget_ != nullptr) --budget_->left_;
  }
  SegmentSlot(SegmentSlot&& other) noexcept = default;
  SegmentSlot& operator=(SegmentSlot&& other) noexcept {
    std::swap(budget_, other.budget_);
    return *this;
  }
  ~SegmentSlot() {
    if (budget_ != nullptr) ++budget_->left_;
  }

 private:
  std::shared_ptr<SegmentBudget> budget_;
};

}  // namespace stepwell::agent
