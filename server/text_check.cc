#include "server/text_check.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/utf8.h"

namespace stepwell {
namespace {

// Offset of the first control character (C0, DEL, C1), npos if there is none. `text` is UTF-8.
std::size_t FindControl(absl::string_view text) {
  for (std::size_t i = 0; i < text.size();
       i += CharacterBytes({text.data() + i, text.size() - i})) {
    if (BeginsWithControl({text.data() + i, text.size() - i})) return i;
  }
  return absl::string_view::npos;
}

}  // namespace

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const std::size_t bytes = CharacterBytes({text.data(), text.size()});
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

MaybeComplaint CheckText(absl::string_view field, absl::string_view text, TextBounds bounds,
                         absl::string_view reason) {
  const auto size = static_cast<std::int64_t>(text.size());
  if (size < bounds.bytes_min || size > bounds.bytes_max) {
    return Invalid(absl::StrCat(reason, "_BYTES"),
                   absl::StrCat(field, " has ", size, " bytes, allowed are ", bounds.bytes_min,
                                " to ", bounds.bytes_max));
  }
  if (!IsUtf8(text)) {
    return Invalid("INVALID_UTF8", absl::StrCat(field, " is not valid UTF-8"));
  }
  if (const std::size_t place = FindControl(text); place != absl::string_view::npos) {
    return Invalid("CONTROL_CHARACTER",
                   absl::StrCat(field, " has a control character at byte ", place,
                                "; allowed is UTF-8 text without control characters"));
  }
  return std::nullopt;
}

MaybeComplaint CheckProjectName(absl::string_view field, absl::string_view text) {
  const bool fits = !text.empty() && text.size() <= 128 &&
                    std::all_of(text.begin(), text.end(), [](unsigned char byte) {
                      return absl::ascii_isalnum(byte) || byte == '.' || byte == '_' || byte == '-';
                    });
  if (fits) return std::nullopt;
  return Invalid("PROJECT_NAME", absl::StrCat(field, " must be 1 to 128 bytes of [A-Za-z0-9._-]"));
}

std::string Shortened(absl::string_view text, std::size_t bytes_max) {
  std::string out;
  while (!text.empty()) {
    const std::size_t bytes = CharacterBytes({text.data(), text.size()});
    if (out.size() + std::max<std::size_t>(bytes, 1) > bytes_max) break;
    if (bytes == 0) {
      out.push_back('?');
      text.remove_prefix(1);
      continue;
    }
    out.append(text.data(), bytes);
    text.remove_prefix(bytes);
  }
  return out;
}

}  // namespace stepwell
