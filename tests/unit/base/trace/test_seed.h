// The seed of random tests: STEPWELL_TEST_SEED repeats a run; it is printed either way.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>

namespace stepwell {

inline std::uint64_t TestSeed() {
  const char* given = std::getenv("STEPWELL_TEST_SEED");
  const std::uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::cout << "STEPWELL_TEST_SEED=" << seed << std::endl;
  return seed;
}

}  // namespace stepwell
