// Terminal: what the place that text goes to can show. Colours only on a terminal, and never with
// NO_COLOR (https://no-color.org). A value.
//
//   const Paint paint = PaintFor(streams.out);
//   streams.out << paint.Bold("demo") << paint.Dim("(id 7)");
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

namespace stepwell::cli {

enum class Colours { kOff, kOn };
// What a text says, and so how it is coloured.
enum class Tone { kPlain, kBold, kDim, kGood, kWarn, kBad, kAccent };

class Paint {
 public:
  explicit Paint(Colours colours) : on_(colours == Colours::kOn) {}

  std::string Bold(std::string_view text) const { return Wrap("1", text); }
  std::string Dim(std::string_view text) const { return Wrap("2", text); }
  std::string Green(std::string_view text) const { return Wrap("32", text); }
  std::string Yellow(std::string_view text) const { return Wrap("33", text); }
  std::string Red(std::string_view text) const { return Wrap("31", text); }
  std::string Cyan(std::string_view text) const { return Wrap("36", text); }
  std::string In(Tone tone, std::string_view text) const;

 private:
  std::string Wrap(const char* code, std::string_view text) const;
  bool on_;
};

// On if `out` is std::cout, standard output is a terminal, TERM is not dumb and NO_COLOR is unset
// or empty.
Paint PaintFor(const std::ostream& out);

// Asks the person at the terminal `question`; false when the answer is not yes.
bool IsConfirmed(std::ostream& out, const std::string& question);

// Columns that `text` (UTF-8, without colour codes) takes; counts code points.
std::size_t ColumnCount(std::string_view text);
// `text` with control characters (C0, DEL, C1) and bytes that are no UTF-8 shown as \xNN, so that a text from the network, or
// of another user's files, never moves the cursor.
std::string Printable(std::string_view text);
// Likewise, line by line.
std::string PrintableLines(std::string_view text);

}  // namespace stepwell::cli
