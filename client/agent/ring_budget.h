// RingBudget: how many rings of one root are open at once. A user of a system agent may make a million
// small ones, and each is a descriptor that others need. Confined to the agent's loop.
//
//   RingSlot slot = budget.Take();
//   if (!slot.valid()) return;   // at the next visit: some are drained by then
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace stepwell::agent {

class RingBudget;

// One ring's share, given back when it goes.
class RingSlot {
 public:
  RingSlot() = default;
  RingSlot(RingSlot&& other) noexcept : budget_(std::exchange(other.budget_, nullptr)) {}
  RingSlot& operator=(RingSlot&& other) noexcept {
    std::swap(budget_, other.budget_);
    return *this;
  }
  ~RingSlot();
  bool valid() const { return budget_ != nullptr; }

 private:
  friend class RingBudget;
  explicit RingSlot(RingBudget* budget) : budget_(budget) {}
  RingBudget* budget_ = nullptr;
};

// Outlives its slots.
class RingBudget {
 public:
  explicit RingBudget(std::size_t count_max) : left_(count_max) {}
  // Of a user's own agent: his limit of descriptors is his own affair.
  static RingBudget& Unlimited() {
    static RingBudget budget(SIZE_MAX);
    return budget;
  }
  RingBudget(const RingBudget&) = delete;
  RingBudget& operator=(const RingBudget&) = delete;

  // Not valid where all are taken.
  RingSlot Take() {
    if (left_ == 0) return RingSlot();
    --left_;
    return RingSlot(this);
  }
  std::size_t left() const { return left_; }

 private:
  friend class RingSlot;
  std::size_t left_;
};

inline RingSlot::~RingSlot() {
  if (budget_ != nullptr) ++budget_->left_;
}

}  // namespace stepwell::agent
