// TextCheck: whether a client's text may be stored. PostgreSQL's text holds neither NUL nor invalid
// UTF-8, and control characters would forge lines in logs and terminals. Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "server/complaint.h"

namespace stepwell {

struct TextBounds {
  std::int64_t bytes_min = 0;
  std::int64_t bytes_max = 0;
};

// Well-formed UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
bool IsUtf8(absl::string_view text);

// Reasons: <REASON>_BYTES, INVALID_UTF8, CONTROL_CHARACTER. `field` is its path in the message.
MaybeComplaint CheckText(absl::string_view field, absl::string_view text, TextBounds bounds,
                         absl::string_view reason);

// 1-128 bytes of [A-Za-z0-9._-].
MaybeComplaint CheckProjectName(absl::string_view field, absl::string_view text);

// The first `bytes_max` bytes of `text` at most, not cutting a character; invalid bytes become '?'.
std::string Shortened(absl::string_view text, std::size_t bytes_max);

}  // namespace stepwell
