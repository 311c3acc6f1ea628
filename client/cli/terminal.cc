#include "client/cli/terminal.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/utf8.h"
#include "fmt/format.h"

namespace stepwell::cli {

std::string Paint::Wrap(const char* code, std::string_view text) const {
  if (!on_ || text.empty()) return std::string(text);
  return fmt::format("\033[{}m{}\033[0m", code, text);
}

std::string Paint::In(Tone tone, std::string_view text) const {
  switch (tone) {
    case Tone::kPlain:
      return std::string(text);
    case Tone::kBold:
      return Bold(text);
    case Tone::kDim:
      return Dim(text);
    case Tone::kGood:
      return Green(text);
    case Tone::kWarn:
      return Yellow(text);
    case Tone::kBad:
      return Red(text);
    case Tone::kAccent:
      return Cyan(text);
  }
  return {};
}

Paint PaintFor(const std::ostream& out) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool wanted = no_color == nullptr || *no_color == '\0';
  const bool able = term != nullptr && std::strcmp(term, "dumb") != 0;
  const bool terminal = &out == &std::cout && isatty(STDOUT_FILENO) != 0;
  return Paint(wanted && able && terminal ? Colours::kOn : Colours::kOff);
}

bool IsConfirmed(std::ostream& out, const std::string& question) {
  out << question << " [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

std::size_t ColumnCount(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) ++count;  // not a continuation byte
  }
  return count;
}

std::string Printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t whole = CharacterBytes(text);
    const std::string_view one = text.substr(0, std::max<std::size_t>(whole, 1));
    if (whole > 0 && !BeginsWithControl(one)) {
      out += one;
    } else {
      for (const char c : one) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    text.remove_prefix(one.size());
  }
  return out;
}

std::string PrintableLines(std::string_view text) {
  const std::vector<absl::string_view> lines =
      absl::StrSplit(absl::string_view(text.data(), text.size()), '\n');
  return absl::StrJoin(lines, "\n", [](std::string* to, absl::string_view line) {
    *to += Printable({line.data(), line.size()});
  });
}

}  // namespace stepwell::cli
