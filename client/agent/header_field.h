// HeaderField: one field of a header that was copied from another process's file: the bytes may lie
// anywhere and say anything.
#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>

namespace stepwell::agent {

// REQUIRES: offset + sizeof(T) <= header.size().
template <typename T>
T HeaderField(std::string_view header, std::size_t offset) {
  T value;
  std::memcpy(&value, header.data() + offset, sizeof(value));
  return value;
}

}  // namespace stepwell::agent
