// Varints: whole numbers as protobuf writes them, seven bits a byte, and a reader that remembers its
// first failure. For what JournalCodec and JournalTicks write. Header-only; values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/string_view.h"

namespace stepwell {

inline constexpr std::size_t kVarintBytesMax = 10;

// Writes at `to`, where there is room for kVarintBytesMax, and says where it ends.
inline char* PutVarint(std::uint64_t value, char* to) {
  while (value >= 0x80) {
    *to++ = static_cast<char>(value | 0x80);
    value >>= 7;
  }
  *to++ = static_cast<char>(value);
  return to;
}

inline void AppendVarint(std::uint64_t value, std::string& out) {
  char bytes[kVarintBytesMax];
  out.append(bytes, PutVarint(value, bytes));
}

// Small numbers of either sign are short.
inline std::uint64_t ZigZag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
inline std::int64_t UnZigZag(std::uint64_t value) {
  return static_cast<std::int64_t>((value >> 1) ^ (~(value & 1) + 1));
}

// Never reads beyond its bytes. After a failure all it gives is 0 or empty.
class VarintReader {
 public:
  explicit VarintReader(absl::string_view bytes) : bytes_(bytes) {}

  std::uint64_t Varint(std::uint64_t max = std::numeric_limits<std::uint64_t>::max()) {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (failed_ || at_ >= bytes_.size()) return Fail();
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      const std::uint64_t bits = byte & 0x7FU;
      if (shift == 63 && bits > 1) return Fail();
      value |= bits << shift;
      if ((byte & 0x80U) == 0) return value <= max ? value : Fail();
    }
    return Fail();
  }

  // A count of things that take at least `bytes_each` bytes each.
  std::uint64_t Count(std::size_t bytes_each) { return Varint((bytes_.size() - at_) / bytes_each); }

  absl::string_view Bytes(std::uint64_t count) {
    if (failed_ || count > bytes_.size() - at_) {
      Fail();
      return {};
    }
    const absl::string_view taken = bytes_.substr(at_, count);
    at_ += count;
    return taken;
  }

  bool done() const { return failed_ || at_ == bytes_.size(); }
  bool failed() const { return failed_; }
  std::size_t at() const { return at_; }

  std::uint64_t Fail() {
    failed_ = true;
    return 0;
  }

 private:
  const absl::string_view bytes_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace stepwell
