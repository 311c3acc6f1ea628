// BitWriter: packs unsigned integers of one width into a BitString, highest bit first, without
// padding between them. Confined to one thread.
//
//   BitWriter writer(/*width=*/7, /*count=*/values.size());
//   for (std::uint64_t value : values) writer.Append(value);
//   BitString bits = std::move(writer).Take();
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "storage/bit_string.h"

namespace stepwell {

class BitWriter {
 public:
  // REQUIRES: 0 <= width <= 63.
  BitWriter(int width, std::size_t count) : width_(width) {
    STEPWELL_CHECK(width >= 0 && width <= 63);
    bits_.bit_count = count * static_cast<std::size_t>(width);
    bits_.bytes.resize((bits_.bit_count + 7) / 8);
  }

  // REQUIRES: value < 2^width, and at most `count` calls.
  void Append(std::uint64_t value) {
    if (width_ == 0) return;
    const int room = 64 - filled_;
    if (width_ < room) {
      word_ |= value << (room - width_);
      filled_ += width_;
      return;
    }
    filled_ = width_ - room;
    StoreWord(word_ | value >> filled_);
    word_ = filled_ == 0 ? 0 : value << (64 - filled_);
  }

  // `count` values, next(0), next(1) and so on; the same in a loop that keeps its state in registers.
  // REQUIRES: each is below 2^width, and all there is room for.
  template <typename Next>
  void AppendAll(std::size_t count, Next next) {
    if (width_ == 0) return;
    const auto wide = static_cast<unsigned>(width_);
    const std::size_t bit_count = count * wide + static_cast<std::size_t>(filled_);
    STEPWELL_CHECK(used_ + (bit_count + 7) / 8 <= bits_.bytes.size());
    char* to = bits_.bytes.data() + used_;
    std::uint64_t word = word_;
    unsigned room = 64 - static_cast<unsigned>(filled_);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t value = next(i);
      if (wide < room) {
        room -= wide;
        word |= value << room;
        continue;
      }
      const unsigned rest = wide - room;  // below 63
      const std::uint64_t stored = __builtin_bswap64(word | value >> rest);
      std::memcpy(to, &stored, sizeof(stored));
      to += sizeof(stored);
      word = rest == 0 ? 0 : value << (64 - rest);
      room = 64 - rest;
    }
    used_ = static_cast<std::size_t>(to - bits_.bytes.data());
    word_ = word;
    filled_ = 64 - static_cast<int>(room);
  }

  BitString Take() && {
    for (; used_ < bits_.bytes.size(); ++used_, word_ <<= 8) {
      bits_.bytes[used_] = static_cast<char>(word_ >> 56);
    }
    return std::move(bits_);
  }

 private:
  void StoreWord(std::uint64_t word) {
    STEPWELL_CHECK(bits_.bytes.size() - used_ >= 8);
    word = __builtin_bswap64(word);
    std::memcpy(bits_.bytes.data() + used_, &word, sizeof(word));
    used_ += sizeof(word);
  }

  const int width_;
  BitString bits_;
  std::size_t used_ = 0;
  // The bits not yet stored, from the top, and how many they are.
  std::uint64_t word_ = 0;
  int filled_ = 0;
};

}  // namespace stepwell
