// Chance: all that happens by chance in a simulated run, from one seed. Confined to its run.
//
//   if (chance.Of(0.1)) ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

namespace stepwell::simulation {

class Chance {
 public:
  explicit Chance(std::uint64_t seed) : bits_(seed) {}

  std::uint64_t Bits() { return bits_(); }
  // REQUIRES: count > 0.
  std::size_t Below(std::size_t count) { return bits_() % count; }
  std::size_t Between(std::size_t first, std::size_t last) {
    return first + Below(last - first + 1);
  }
  bool Of(double probability) { return static_cast<double>(bits_() >> 11) * 0x1p-53 < probability; }

 private:
  // mt19937_64 is the same everywhere, the distributions of the standard library are not.
  std::mt19937_64 bits_;
};

}  // namespace stepwell::simulation
