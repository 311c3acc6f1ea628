#include "storage/wide_decode.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace stepwell {

#if defined(STEPWELL_WIDE)
namespace {

using As = DecodeTarget::As;

// Exactly what a cast of each says. The upper and the lower half of each, moved up to where none is negative, are the
// low bits of two doubles, of 2^84 and 2^52; the sum of what these are beyond that is rounded once.
STEPWELL_WIDE_INLINE FourDoubles ToDoubles(const FourWords& integers) {
  constexpr double kHigh = 0x1p84;
  constexpr double kLow = 0x1p52;
  const FourWords moved = integers ^ (std::uint64_t{1} << 63);
  const FourWords high = moved >> 32 | std::bit_cast<std::uint64_t>(kHigh);
  const FourWords low = (moved & 0xffffffff) | std::bit_cast<std::uint64_t>(kLow);
  return (DoublesOf(high) - (kHigh + 0x1p63 + kLow)) + DoublesOf(low);
}

template <As as>
STEPWELL_WIDE_INLINE FourWords Made(const FourWords& integers, double by) {
  if constexpr (as == As::kInteger) return integers;
  if constexpr (as == As::kDouble) return WordsOf(ToDoubles(integers));
  if constexpr (as == As::kProduct) return WordsOf(ToDoubles(integers) * by);
  if constexpr (as == As::kQuotient) return WordsOf(ToDoubles(integers) / by);
}

// base + factor * x, wrapping.
class FrameStep {
 public:
  explicit FrameStep(const EncodedVector& encoded)
      : base_(static_cast<std::uint64_t>(encoded.base)),
        factor_(static_cast<std::uint64_t>(encoded.factor)) {}
  STEPWELL_WIDE_INLINE FourWords operator()(std::size_t, const FourWords& x) { return On(x); }
  // Most factors are 1, and there is no instruction that multiplies words.
  STEPWELL_WIDE_INLINE FourWords On(const FourWords& x) const {
    return base_ + (factor_ == 1 ? x : x * factor_);
  }

 private:
  const std::uint64_t base_;
  const std::uint64_t factor_;
};

class LineStep {
 public:
  STEPWELL_WIDE_INLINE explicit LineStep(const EncodedVector& encoded)
      : frame_(encoded),
        step_(static_cast<std::uint64_t>(encoded.dictionary[0])),
        rises_{0, step_, 2 * step_, 3 * step_} {}
  STEPWELL_WIDE_INLINE FourWords operator()(std::size_t i, const FourWords& x) {
    return frame_.On(x) + rises_ + step_ * i;
  }

 private:
  const FrameStep frame_;
  const std::uint64_t step_;
  const FourWords rises_;
};

// Sums from the first delta on, which is that of sample 1. Fewer than four come once, as the last ones.
class DeltaStep {
 public:
  STEPWELL_WIDE_INLINE explicit DeltaStep(const EncodedVector& encoded)
      : frame_(encoded), lowest_(static_cast<std::uint64_t>(encoded.dictionary[0])) {}
  STEPWELL_WIDE_INLINE FourWords operator()(std::size_t, const FourWords& x) {
    constexpr FourWords kNone = {};
    FourWords sums = x + lowest_;
    sums += __builtin_shufflevector(sums, kNone, 4, 0, 1, 2);
    sums += __builtin_shufflevector(sums, kNone, 4, 4, 0, 1);
    const FourWords all = before_ + sums;
    before_ += __builtin_shufflevector(sums, kNone, 3, 3, 3, 3);
    return frame_.On(all);
  }

 private:
  const FrameStep frame_;
  const std::uint64_t lowest_;
  FourWords before_ = {};
};

// Integers that begin with a byte: eight of them take as many bytes as one takes bits, so that where in these each
// begins is the same for all blocks.
class Block {
 public:
  static constexpr std::size_t kIntegers = 8;

  STEPWELL_WIDE_INLINE explicit Block(int width) : unused_(64 - width) {
    for (std::size_t i = 0; i < kIntegers; ++i) {
      bytes_[i] = i * static_cast<std::size_t>(width) / 8;
      skips_[i / kFour][i % kFour] = i * static_cast<std::size_t>(width) % 8;
    }
  }
  // How many bytes from its first one on are read.
  std::size_t reach() const { return bytes_.back() + sizeof(std::uint64_t); }
  // Those of the first or the second half.
  STEPWELL_WIDE_INLINE FourWords Read(const char* from, std::size_t half) const {
    const std::size_t* bytes = bytes_.data() + half * kFour;
    const FourWords words = {WordAt(from + bytes[0]), WordAt(from + bytes[1]),
                             WordAt(from + bytes[2]), WordAt(from + bytes[3])};
    return Swapped(words) << skips_[half] >> unused_;
  }

 private:
  using Bytes = unsigned char __attribute__((vector_size(sizeof(FourWords))));

  static std::uint64_t WordAt(const char* from) {
    std::uint64_t word;
    std::memcpy(&word, from, sizeof(word));
    return word;
  }
  // The first byte of each word in memory is its highest.
  STEPWELL_WIDE_INLINE static FourWords Swapped(const FourWords& words) {
    const auto& bytes = reinterpret_cast<const Bytes&>(words);
    const Bytes swapped = __builtin_shufflevector(
        bytes, bytes, 7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8,  //
        23, 22, 21, 20, 19, 18, 17, 16, 31, 30, 29, 28, 27, 26, 25, 24);
    return reinterpret_cast<const FourWords&>(swapped);
  }

  std::array<std::size_t, kIntegers> bytes_;
  std::array<FourWords, 2> skips_;
  const std::uint64_t unused_;
};

// The first ones; says where the next go.
STEPWELL_WIDE_INLINE char* StoreSome(const FourWords& made, std::size_t count, char* to) {
  std::memcpy(to, &made, count * sizeof(std::uint64_t));
  return to + count * sizeof(std::uint64_t);
}

// Reads integers [first, end) and stores what Step and then `as` make of each. Sample 0 of a delta is its base.
template <As as, typename Step>
STEPWELL_WIDE void DecodeAs(const EncodedVector& encoded, std::size_t first, std::size_t end,
                            const DecodeTarget& target) {
  const BitReader reader(encoded.bits, encoded.width);
  const Block block(encoded.width);
  const char* const data = encoded.bits.bytes.data();
  const std::size_t bytes = encoded.bits.bytes.size();
  auto* to = static_cast<char*>(target.to);
  if constexpr (std::is_same_v<Step, DeltaStep>) {
    to = StoreSome(Made<as>(FourWords{} + static_cast<std::uint64_t>(encoded.base), target.by), 1,
                   to);
  }
  Step step(encoded);
  for (std::size_t i = first; i < end;) {
    const std::size_t within = i % Block::kIntegers;
    const std::size_t byte = i / Block::kIntegers * static_cast<std::size_t>(encoded.width);
    if (within == 0 && end - i >= Block::kIntegers && bytes - byte >= block.reach()) {
      for (std::size_t half = 0; half < 2; ++half, i += kFour, to += sizeof(FourWords)) {
        StoreFour(Made<as>(step(i, block.Read(data + byte, half)), target.by), to);
      }
      continue;
    }
    // One by one up to the next block, or at the end.
    const std::size_t count = std::min({kFour, end - i, Block::kIntegers - within});
    FourWords x = {};
    for (std::size_t lane = 0; lane < count; ++lane) x[lane] = reader.Read(i + lane);
    to = StoreSome(Made<as>(step(i, x), target.by), count, to);
    i += count;
  }
}

template <typename Step>
void Decode(const EncodedVector& encoded, std::size_t first, std::size_t end,
            const DecodeTarget& target) {
  switch (target.as) {
    case As::kInteger:
      return DecodeAs<As::kInteger, Step>(encoded, first, end, target);
    case As::kDouble:
      return DecodeAs<As::kDouble, Step>(encoded, first, end, target);
    case As::kProduct:
      return DecodeAs<As::kProduct, Step>(encoded, first, end, target);
    case As::kQuotient:
      return DecodeAs<As::kQuotient, Step>(encoded, first, end, target);
  }
}

}  // namespace

void DecodeFrameWide(const EncodedVector& encoded, std::size_t first, std::size_t end,
                     const DecodeTarget& target) {
  Decode<FrameStep>(encoded, first, end, target);
}

void DecodeLineWide(const EncodedVector& encoded, std::size_t first, std::size_t end,
                    const DecodeTarget& target) {
  Decode<LineStep>(encoded, first, end, target);
}

void DecodeDeltaWide(const EncodedVector& encoded, std::size_t count, const DecodeTarget& target) {
  Decode<DeltaStep>(encoded, 0, count - 1, target);
}
#endif

}  // namespace stepwell
