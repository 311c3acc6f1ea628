#include "base/shell_word.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace stepwell {

std::string ShellWord(std::string_view text) {
  constexpr std::string_view kPlain = "_@%+=:,./-";
  const bool is_plain = std::all_of(text.begin(), text.end(), [&](unsigned char c) {
    return absl::ascii_isalnum(c) || kPlain.find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (is_plain && !text.empty()) return std::string(text);
  return absl::StrCat("'", absl::StrReplaceAll({text.data(), text.size()}, {{"'", "'\\''"}}), "'");
}

}  // namespace stepwell
