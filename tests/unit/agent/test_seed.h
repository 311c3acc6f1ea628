// TestSeed: the seed of a random test, printed; STEPWELL_TEST_SEED=N repeats one.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>

namespace stepwell::agent {

inline std::uint64_t TestSeed() {
  const char* given = std::getenv("STEPWELL_TEST_SEED");
  const std::uint64_t seed =
      given == nullptr ? std::random_device()() : std::strtoull(given, nullptr, 10);
  std::cout << "STEPWELL_TEST_SEED=" << seed << "\n";
  return seed;
}

}  // namespace stepwell::agent
