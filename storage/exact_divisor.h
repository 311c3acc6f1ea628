// ExactDivisor: tells whether a number divides others, and how often, by a multiplication: to divide by
// what is known at run time only costs many times as much. A value; thread-safe.
//
//   const ExactDivisor by(12);
//   by.Divides(36);   // true
//   by.Quotient(36);  // 3
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace stepwell {

class ExactDivisor {
 public:
  // REQUIRES: divisor > 0.
  explicit ExactDivisor(std::uint64_t divisor)
      : shift_(std::countr_zero(divisor)),
        inverse_(InverseOf(divisor >> shift_)),
        quotient_max_(std::numeric_limits<std::uint64_t>::max() / divisor) {}

  // Multiples alone have a quotient that small: Granlund and Montgomery, "Division by invariant integers
  // using multiplication", section 9.
  bool Divides(std::uint64_t x) const { return std::rotr(x * inverse_, shift_) <= quotient_max_; }
  // REQUIRES: Divides(x).
  std::uint64_t Quotient(std::uint64_t x) const { return (x >> shift_) * inverse_; }
  // REQUIRES: the divisor divides the absolute value of `x`.
  std::int64_t Quotient(std::int64_t x) const {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(x >> shift_) * inverse_);
  }

 private:
  // Modulo 2^64, by Newton's method: 5 bits are right, then twice as many each time.
  static constexpr std::uint64_t InverseOf(std::uint64_t odd) {
    std::uint64_t inverse = odd * 3 ^ 2;
    for (int bits = 5; bits < 64; bits *= 2) inverse *= 2 - odd * inverse;
    return inverse;
  }

  int shift_;
  std::uint64_t inverse_;  // of the odd part
  std::uint64_t quotient_max_;
};

}  // namespace stepwell
