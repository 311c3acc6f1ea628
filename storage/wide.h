// Wide: four numbers of 64 bits in one instruction, where a processor has such. Compilers do not know that before
// run time: a function marked STEPWELL_WIDE is for whoever found IsWide(), and the plain loop that it has beside
// it says the same without. Elsewhere than on x86-64 there are plain loops alone. A core; thread-safe.
//
//   #if defined(STEPWELL_WIDE)
//     if (lanes == Lanes::kFour) done = AddWide(integers, sum);
//   #endif
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace stepwell {

// How many numbers an instruction takes. Tests hold the two against each other; all else asks WidestLanes().
enum class Lanes { kOne, kFour };

#if defined(__x86_64__)
#define STEPWELL_WIDE __attribute__((target("avx2")))
#define STEPWELL_WIDE_INLINE [[gnu::always_inline, gnu::target("avx2")]] inline

inline constexpr std::size_t kFour = 4;
using FourIntegers = std::int64_t __attribute__((vector_size(kFour * sizeof(std::int64_t))));
using FourWords = std::uint64_t __attribute__((vector_size(kFour * sizeof(std::uint64_t))));
using FourDoubles = double __attribute__((vector_size(kFour * sizeof(double))));

inline bool IsWide() {
  static const bool is_wide = __builtin_cpu_supports("avx2") != 0;
  return is_wide;
}

// REQUIRES of all of these: IsWide(), and room for four where there is a pointer.
STEPWELL_WIDE_INLINE FourIntegers LoadFour(const std::int64_t* from) {
  FourIntegers four;
  std::memcpy(&four, from, sizeof(four));
  return four;
}
STEPWELL_WIDE_INLINE FourDoubles LoadFour(const double* from) {
  FourDoubles four;
  std::memcpy(&four, from, sizeof(four));
  return four;
}
template <typename Four>
STEPWELL_WIDE_INLINE void StoreFour(const Four& four, void* to) {
  std::memcpy(to, &four, sizeof(four));
}
// The same bits.
template <typename Four>
STEPWELL_WIDE_INLINE FourWords WordsOf(const Four& four) {
  return __builtin_bit_cast(FourWords, four);
}
template <typename Four>
STEPWELL_WIDE_INLINE FourIntegers IntegersOf(const Four& four) {
  return __builtin_bit_cast(FourIntegers, four);
}
template <typename Four>
STEPWELL_WIDE_INLINE FourDoubles DoublesOf(const Four& four) {
  return __builtin_bit_cast(FourDoubles, four);
}
// Bit i: the highest one of lane i, which comparisons set.
STEPWELL_WIDE_INLINE unsigned SignsOf(const FourIntegers& four) {
  return static_cast<unsigned>(__builtin_ia32_movmskpd256(DoublesOf(four)));
}

inline Lanes WidestLanes() { return IsWide() ? Lanes::kFour : Lanes::kOne; }
#else
inline Lanes WidestLanes() { return Lanes::kOne; }
#endif

}  // namespace stepwell
