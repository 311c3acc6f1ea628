// The seed of this process' fault tests: STEPWELL_TEST_SEED, else by chance; one for all of them, so that the one
// that is printed repeats each. Of the standard library alone.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>

namespace stepwell::faults {

// Prints it as a line of its own, where tests/second_look.py finds it.
inline std::uint64_t Seed() {
  static const std::uint64_t seed = [] {
    const char* given = std::getenv("STEPWELL_TEST_SEED");
    return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  }();
  std::cout << "STEPWELL_TEST_SEED=" << seed << std::endl;
  return seed;
}

}  // namespace stepwell::faults
