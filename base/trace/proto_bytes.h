// ProtoBytes: fields of a message in protobuf's wire form, appended to its bytes. For forms of others whose messages
// are no part of our contract (Perfetto's). Functions.
//
//   std::string event;
//   AppendProtoInt(9, 1, event);
//   AppendProtoBytes(11, event, packet);
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace stepwell {

inline void AppendProtoVarint(std::uint64_t value, std::string& out) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

// The kinds of a field's value on the wire.
inline constexpr std::uint32_t kProtoVarint = 0;
inline constexpr std::uint32_t kProtoFixed64 = 1;
inline constexpr std::uint32_t kProtoLength = 2;
inline constexpr std::uint32_t kProtoFixed32 = 5;

// Negative ones as two's complement, as protobuf has int64.
inline void AppendProtoInt(std::uint32_t field, std::uint64_t value, std::string& out) {
  AppendProtoVarint(field << 3 | kProtoVarint, out);
  AppendProtoVarint(value, out);
}

// Strings, bytes and messages.
inline void AppendProtoBytes(std::uint32_t field, std::string_view value, std::string& out) {
  AppendProtoVarint(field << 3 | kProtoLength, out);
  AppendProtoVarint(value.size(), out);
  out.append(value);
}

inline void AppendProtoFixed64(std::uint32_t field, std::uint64_t value, std::string& out) {
  AppendProtoVarint(field << 3 | kProtoFixed64, out);
  for (int byte = 0; byte < 8; ++byte) out.push_back(static_cast<char>(value >> 8 * byte));
}

inline void AppendProtoDouble(std::uint32_t field, double value, std::string& out) {
  AppendProtoFixed64(field, std::bit_cast<std::uint64_t>(value), out);
}

struct ProtoField {
  std::uint32_t number = 0;
  std::uint64_t value = 0;      // of numbers: as they lie on the wire
  std::string_view bytes = {};  // of strings, bytes and messages

  double AsDouble() const { return std::bit_cast<double>(value); }
  std::int64_t AsInt() const { return static_cast<std::int64_t>(value); }
};

// Takes one varint off the begin of `bytes`. False: it is not whole, or none.
inline bool TakeProtoVarint(std::string_view& bytes, std::uint64_t& value) {
  value = 0;
  for (std::size_t i = 0; i < bytes.size() && i < 10; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << 7 * i;
    if ((byte & 0x80) != 0) continue;
    bytes.remove_prefix(i + 1);
    return true;
  }
  return false;
}

// Takes one field off the begin of `bytes`. False: there is none, or what follows is damaged or not whole.
inline bool TakeProtoField(std::string_view& bytes, ProtoField& field) {
  std::string_view rest = bytes;
  std::uint64_t tag = 0;
  if (!TakeProtoVarint(rest, tag) || tag >> 3 == 0 || tag >> 3 > 536'870'911) return false;
  field = {.number = static_cast<std::uint32_t>(tag >> 3)};
  const std::uint64_t kind = tag & 7;
  if (kind == kProtoVarint) {
    if (!TakeProtoVarint(rest, field.value)) return false;
  } else if (kind == kProtoLength) {
    std::uint64_t size = 0;
    if (!TakeProtoVarint(rest, size) || size > rest.size()) return false;
    field.bytes = rest.substr(0, size);
    rest.remove_prefix(size);
  } else if (kind == kProtoFixed64 || kind == kProtoFixed32) {
    const std::size_t size = kind == kProtoFixed64 ? 8 : 4;
    if (rest.size() < size) return false;
    for (std::size_t i = 0; i < size; ++i) {
      field.value |= static_cast<std::uint64_t>(static_cast<unsigned char>(rest[i])) << 8 * i;
    }
    rest.remove_prefix(size);
  } else {
    return false;
  }
  bytes = rest;
  return true;
}

}  // namespace stepwell
