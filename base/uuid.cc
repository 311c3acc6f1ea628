#include "base/uuid.h"

#include <sys/random.h>

#include <algorithm>

#include "base/check.h"

namespace stepwell {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool IsDashPlace(std::size_t index) {
  return index == 8 || index == 13 || index == 18 || index == 23;
}

}  // namespace

Uuid Uuid::Random() {
  Uuid uuid;
  STEPWELL_CHECK(getrandom(uuid.bytes.data(), uuid.bytes.size(), 0) == 16);
  uuid.bytes[6] = static_cast<std::uint8_t>((uuid.bytes[6] & 0x0f) | 0x40);
  uuid.bytes[8] = static_cast<std::uint8_t>((uuid.bytes[8] & 0x3f) | 0x80);
  return uuid;
}

std::optional<Uuid> Uuid::FromText(std::string_view text) {
  if (text.size() != 36) return std::nullopt;
  Uuid uuid;
  std::size_t nibble = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (IsDashPlace(i)) {
      if (text[i] != '-') return std::nullopt;
      continue;
    }
    const int digit = HexDigit(text[i]);
    if (digit < 0) return std::nullopt;
    auto& byte = uuid.bytes[nibble / 2];
    byte = static_cast<std::uint8_t>((byte << 4) | digit);
    ++nibble;
  }
  return uuid;
}

std::optional<Uuid> Uuid::FromBytes(std::string_view bytes) {
  if (bytes.size() != 16) return std::nullopt;
  Uuid uuid;
  std::copy(bytes.begin(), bytes.end(), uuid.bytes.begin());
  return uuid;
}

std::string Uuid::ToText() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(36);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text.push_back('-');
    text.push_back(kDigits[bytes[i] >> 4]);
    text.push_back(kDigits[bytes[i] & 15]);
  }
  return text;
}

std::string Uuid::ToBytes() const { return std::string(bytes.begin(), bytes.end()); }

}  // namespace stepwell
