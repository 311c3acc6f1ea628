// A text as JSON writes it, quotes included. One that is no UTF-8 (variables may hold anything) loses
// its bytes past ASCII: a reader would refuse the whole document.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "client/recorder/src/catalog.h"

namespace stepwell::recorder {

inline std::string Quoted(std::string_view text) {
  const bool is_utf8 = IsUtf8(text);
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof(escaped), "\\u%04x", static_cast<unsigned>(c));
      json += escaped;
    } else {
      json += !is_utf8 && (c & 0x80) != 0 ? '?' : c;
    }
  }
  return json + "\"";
}

}  // namespace stepwell::recorder
