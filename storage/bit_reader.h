// BitReader: the counterpart of BitWriter, by index. Looks at a BitString that outlives it.
// Thread-safe.
//
//   BitReader reader(bits, /*width=*/7);
//   if (!reader.Holds(sample_count)) return absl::DataLossError(...);
//   const std::uint64_t third = reader.Read(2);
//   reader.ReadAll(sample_count, [&](std::size_t index, std::uint64_t integer) { ... });
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "storage/bit_string.h"

namespace stepwell {

class BitReader {
 public:
  // So many bits lie within eight bytes wherever they begin.
  static constexpr int kWordWidthMax = 57;

  // REQUIRES: 0 <= width <= 63.
  BitReader(const BitString& bits, int width)
      : data_(bits.bytes.data()),
        bytes_(bits.bytes.size()),
        bit_count_(bits.bit_count),
        width_(width) {}

  // Whether the string is exactly `count` integers long and has the bytes that it claims.
  // REQUIRES: count < 2^56.
  bool Holds(std::size_t count) const {
    return bit_count_ == count * static_cast<std::size_t>(width_) && bytes_ == (bit_count_ + 7) / 8;
  }

  // REQUIRES: Holds(count) and index < count.
  std::uint64_t Read(std::size_t index) const {
    const std::size_t bit = index * static_cast<std::size_t>(width_);
    const std::size_t byte = bit / 8;
    if (byte + kReach <= bytes_) [[likely]] {
      return Extract(data_ + byte, static_cast<int>(bit % 8));
    }
    std::array<char, kReach> tail{};
    if (byte < bytes_) std::memcpy(tail.data(), data_ + byte, std::min(kReach, bytes_ - byte));
    return Extract(tail.data(), static_cast<int>(bit % 8));
  }

  // take(index, integer) for the first `count` in order: half the time of as many Read()s, since the
  // end of the string is looked at once. REQUIRES: Holds(count).
  template <typename Take>
  void ReadAll(std::size_t count, Take take) const {
    ReadRange(0, count, take);
  }

  // The same for [index, count). REQUIRES: what it holds is as many or more, and index <= count.
  template <typename Take>
  void ReadRange(std::size_t index, std::size_t count, Take take) const {
    if (width_ == 0) {
      for (; index < count; ++index) take(index, std::uint64_t{0});
      return;
    }
    const auto width = static_cast<std::size_t>(width_);
    if (width_ <= kWordWidthMax && bytes_ >= sizeof(std::uint64_t)) {
      // Those that begin in the last byte that has seven behind it, or before.
      const std::size_t within = ((bytes_ - sizeof(std::uint64_t)) * 8 + 7) / width + 1;
      const int unused = 64 - width_;
      std::size_t bit = index * width;
      for (const std::size_t end = std::min(count, within); index < end; ++index, bit += width) {
        std::uint64_t word;
        std::memcpy(&word, data_ + bit / 8, sizeof(word));
        take(index, __builtin_bswap64(word) << (bit % 8) >> unused);
      }
    }
    for (; index < count; ++index) take(index, Read(index));
  }

 private:
  // 63 bits that start in the middle of a byte touch nine.
  static constexpr std::size_t kReach = 9;

  std::uint64_t Extract(const char* from, int skip) const {
    std::uint64_t word;
    std::memcpy(&word, from, sizeof(word));
    word = __builtin_bswap64(word) << skip;
    word |= static_cast<std::uint64_t>(static_cast<unsigned char>(from[8])) >> (8 - skip);
    return word >> 1 >> (63 - width_);
  }

  const char* const data_;
  const std::size_t bytes_;
  const std::size_t bit_count_;
  const int width_;
};

}  // namespace stepwell
