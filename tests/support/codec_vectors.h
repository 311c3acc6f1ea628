// Vectors for the tests and the bench of the codec: hostile ones by name, random ones by seed, and
// the metric kinds of a training cluster, one hour each. Header only.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace stepwell::testing {

struct NamedValues {
  std::string name;
  std::vector<double> values;
};

struct NamedIntegers {
  std::string name;
  std::vector<std::int64_t> integers;
};

// STEPWELL_TEST_SEED repeats a run; the seed is printed either way.
inline std::uint64_t TestSeed() {
  const char* given = std::getenv("STEPWELL_TEST_SEED");
  const std::uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::cout << "STEPWELL_TEST_SEED=" << seed << std::endl;
  return seed;
}

// The first and the last microsecond since 1970 that are both an int64 and a timestamptz.
inline constexpr std::int64_t kTimestampMinUs = -210866803200000000;
inline constexpr std::int64_t kTimestampMaxUs = std::numeric_limits<std::int64_t>::max();

inline std::vector<NamedValues> HostileValues() {
  using Limits = std::numeric_limits<double>;
  const double quiet = std::bit_cast<double>(std::uint64_t{0x7ff8000000000abc});
  const double signalling = std::bit_cast<double>(std::uint64_t{0x7ff0000000000001});
  const double negative_nan = std::bit_cast<double>(std::uint64_t{0xfff8000000000000});
  const double inf = Limits::infinity();
  std::vector<NamedValues> all = {
      {"empty", {}},
      {"one zero", {0.0}},
      {"one minus zero", {-0.0}},
      {"one", {1.0}},
      {"zeros of both signs", {0.0, -0.0, 0.0, -0.0}},
      {"one NaN", {quiet}},
      {"NaN payloads", {quiet, signalling, negative_nan, Limits::quiet_NaN()}},
      {"infinities", {inf, -inf, 1.0}},
      {"NaN among whole numbers", {1, 2, 3, quiet, 5, 6, 7, 8, 9, 10}},
      {"denormals", {Limits::denorm_min(), -Limits::denorm_min(), 3 * Limits::denorm_min()}},
      {"least normal", {Limits::min(), -Limits::min()}},
      {"greatest", {Limits::max(), -Limits::max()}},
      {"greatest and least", {Limits::max(), Limits::denorm_min(), 0.1}},
      {"2^53 and beside", {9007199254740991, 9007199254740992, 9007199254740994}},
      {"2^61", {std::ldexp(1.0, 61), -std::ldexp(1.0, 61), 0}},
      {"2^62", {std::ldexp(1.0, 62), 1.0}},
      {"2^63", {std::ldexp(1.0, 63), -std::ldexp(1.0, 63)}},
      {"tenths", {0.1, 0.2, 0.3, 0.1 + 0.2, 0.7}},
      {"thirds", {1.0 / 3, 2.0 / 3, 4.0 / 3}},
      {"10^22", {1e22, 2e22, 0}},
      {"10^-22", {1e-22, 2e-22, 0}},
      {"10^-23", {1e-23, 2e-23, 0}},
      {"powers of two", {0.5, 0.25, 0.125, 1024, -0.0625}},
      {"2^-1022", {std::ldexp(1.0, -1022), std::ldexp(3.0, -1022)}},
      {"2^-1000 with full mantissa", {std::ldexp(1.0 / 3, -900), std::ldexp(2.0 / 3, -900)}},
      {"runs", {1, 1, 1, 1, 1, 1, 7, 7, 7, 7, 7, 7, 7, 7, 1e6, 1e6, 1e6, 1e6, 1e6}},
      {"nanoseconds", {0.123456789, 0.123456790, 1.000000001, 12345.678901234}},
  };
  std::vector<double> nan_run(500, quiet);
  all.push_back({"NaN throughout", nan_run});
  nan_run[250] = signalling;
  all.push_back({"one signalling NaN in a run", nan_run});
  for (int exponent = -1074; exponent <= 1023; exponent += 7) {
    const double value = std::ldexp(1.0, exponent);
    all.push_back({"2^" + std::to_string(exponent), {value, 3 * value, -5 * value}});
  }
  return all;
}

inline std::vector<NamedIntegers> HostileIntegers() {
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  return {
      {"empty", {}},
      {"no batch", {-1, -1, -1}},
      {"all of int64", {kMin, kMax, 0, -1, 1}},
      {"least", {kMin, kMin + 1, kMin + 2}},
      {"greatest", {kMax, kMax - 1, kMax - 2}},
      {"span of exactly 2^63 - 1", {-1, kMax - 1, 5, 1234567890123}},
      {"span of exactly 2^63", {-1, kMax, 5}},
      {"swinging", {0, kMax, 0, kMax, 1}},
      {"swinging below zero", {0, kMin, 0, kMin, -1}},
      {"timestamptz from end to end", {kTimestampMinUs, kTimestampMaxUs}},
      {"before Christ", {kTimestampMinUs, kTimestampMinUs + 1, kTimestampMinUs + 1000001}},
      {"end of time", {kTimestampMaxUs - 2000000, kTimestampMaxUs - 1000000, kTimestampMaxUs}},
      {"one", {1700000000000000}},
      {"two", {1700000000000000, 1700000001000000}},
  };
}

// A vector of random length whose samples are drawn from one random family.
inline std::vector<double> RandomValues(std::mt19937_64& random) {
  const auto below = [&](std::uint64_t limit) { return random() % limit; };
  const std::size_t count = below(4) == 0 ? below(700) : below(40);
  const double decimal = std::pow(10.0, static_cast<double>(below(12)));
  const double binary = std::ldexp(1.0, static_cast<int>(below(80)) - 40);
  const int bits = static_cast<int>(1 + below(53));
  const std::uint64_t family = below(10);
  std::vector<double> values;
  double walk = static_cast<double>(below(1000));
  while (values.size() < count) {
    const auto integer = static_cast<double>(random() >> (64 - bits));
    walk += static_cast<double>(below(7)) - 3;
    switch (family) {
      case 0:  // any bit pattern at all
        values.push_back(std::bit_cast<double>(random()));
        break;
      case 1:
        values.push_back(integer / decimal);
        break;
      case 2:
        values.push_back(-integer * binary);
        break;
      case 3:
        values.push_back(below(5) == 0 ? integer : 0.0);
        break;
      case 4:
        values.insert(values.end(), 1 + below(60), integer / decimal);
        break;
      case 5:
        values.push_back(static_cast<double>(below(4)) * 1234567.891);
        break;
      case 6:
        values.push_back(walk / decimal);
        break;
      case 7:
        values.push_back(below(30) == 0 ? std::numeric_limits<double>::quiet_NaN() : walk);
        break;
      case 8:
        values.push_back(1e6 + 2048 * walk);
        break;
      default:
        values.push_back(static_cast<double>(values.size()) * 3 + static_cast<double>(below(2)));
    }
  }
  return values;
}

inline std::vector<std::int64_t> RandomIntegers(std::mt19937_64& random) {
  const auto below = [&](std::uint64_t limit) { return random() % limit; };
  const std::size_t count = below(4) == 0 ? below(700) : below(40);
  const int shift = static_cast<int>(below(64));
  const std::uint64_t family = below(4);
  const std::uint64_t step = 1 + (random() >> (24 + below(40)));
  const std::uint64_t factor = 1 + below(1000);
  std::uint64_t at = random() >> below(64);
  std::vector<std::int64_t> integers;
  while (integers.size() < count) {
    at += step;
    switch (family) {
      case 0:
        integers.push_back(static_cast<std::int64_t>(random()) >> shift);
        break;
      case 1:
        integers.push_back(static_cast<std::int64_t>(at + (random() >> 50)));
        break;
      case 2:
        integers.push_back(static_cast<std::int64_t>(at += factor * below(9)));
        break;
      default:
        integers.push_back(static_cast<std::int64_t>(factor * below(5)) - 1);
    }
  }
  return integers;
}

}  // namespace stepwell::testing
