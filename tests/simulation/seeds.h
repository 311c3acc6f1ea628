// Seeds: which runs a test makes, and how one of them is repeated.
#pragma once

#include <cstdint>
#include <string>

#include "tests/simulation/world.h"

namespace stepwell::simulation {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::uint64_t kSeedsPerTest = 50;
#else
inline constexpr std::uint64_t kSeedsPerTest = 500;
#endif

// STEPWELL_TEST_SEED, else by chance; printed.
std::uint64_t FirstSeed();
// Should the process end in it, the seed is told all the same.
Outcome RunSeed(std::uint64_t seed);
// Runs it again, with its last lines, and how to do the same by hand.
std::string Repeat(std::uint64_t seed);

}  // namespace stepwell::simulation
