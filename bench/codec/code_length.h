// CodeLength: how short a vector of numbers could be, as an estimate of its entropy. What is computed is
// the length of a code that could be decoded: an arithmetic coder that knows nothing at first and learns
// as it goes, the best of several. So it is above the entropy by what learning costs (some bytes an
// hour), and unlike the empirical entropy of 3600 samples it is not below it where each is another value.
// Pure functions.
//
//   const double bits = CodeLength(integers);
#pragma once

#include <cstdint>
#include <span>

namespace stepwell::bench {

// In bits, of the shortest of:
// - samples, their first, second and third differences, their distances from a line, each divided by the
//   greatest common divisor; coded by magnitude (an exponent, after the exponents of the two before it;
//   then its highest bits, learned; the rest as they are);
// - samples all alike within their range; zeros by flags and the others all alike;
// - samples and first differences as words, after the word before, else among all, else as a magnitude.
double CodeLength(std::span<const std::int64_t> integers);

// Of doubles that no divisor holds: of their 64 bits, as words or as integers.
double CodeLengthOfBits(std::span<const double> values);

}  // namespace stepwell::bench
