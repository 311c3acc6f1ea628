#include "client/cli/terminal.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <iostream>

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

std::size_t ColumnCount(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) ++count;  // not a continuation byte
  }
  return count;
}

std::string Printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace stepwell::cli
