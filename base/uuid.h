// Uuid: 16 random or given bytes with the usual text form. A value; thread-compatible.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace stepwell {

struct Uuid {
  std::array<std::uint8_t, 16> bytes{};

  // Version 4, from getrandom(2).
  static Uuid Random();
  // "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", upper or lower case; nothing else.
  static std::optional<Uuid> FromText(std::string_view text);
  // Exactly 16 bytes, as on the wire.
  static std::optional<Uuid> FromBytes(std::string_view bytes);

  std::string ToText() const;
  std::string ToBytes() const;

  auto operator<=>(const Uuid&) const = default;

  template <typename H>
  friend H AbslHashValue(H h, const Uuid& uuid) {
    return H::combine(std::move(h), uuid.bytes);
  }
};

}  // namespace stepwell
