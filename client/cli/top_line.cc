#include "client/cli/top_line.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "client/cli/units.h"

namespace stepwell::cli {
namespace {

constexpr std::uint32_t kBroken = 0xfffd;

struct Range {
  std::uint32_t first;
  std::uint32_t last;
};

// Combining marks and joiners, of the scripts that names are likely to be in.
constexpr Range kZeroWide[] = {{0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd},
                               {0x064b, 0x065f}, {0x0e34, 0x0e3a}, {0x1ab0, 0x1aff},
                               {0x1dc0, 0x1dff}, {0x200b, 0x200d}, {0x20d0, 0x20ff},
                               {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}};
// East Asian Width W and F, and emoji.
constexpr Range kTwoWide[] = {{0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0x33ff},
                              {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xa000, 0xa4cf},
                              {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},
                              {0xff00, 0xff60},   {0xffe0, 0xffe6},   {0x1f300, 0x1f64f},
                              {0x1f680, 0x1f6ff}, {0x1f900, 0x1faff}, {0x20000, 0x3fffd}};
// What a terminal may obey rather than show: control characters, and those that turn the direction
// of what follows.
constexpr Range kControl[] = {{0x00, 0x1f},     {0x7f, 0x9f},     {0x200e, 0x200f},
                              {0x2028, 0x202e}, {0x2066, 0x2069}, {0xfeff, 0xfeff}};

template <std::size_t kCount>
bool IsIn(std::uint32_t point, const Range (&ranges)[kCount]) {
  return std::any_of(std::begin(ranges), std::end(ranges), [point](const Range& range) {
    return point >= range.first && point <= range.last;
  });
}

int WidthOf(std::uint32_t point) {
  if (IsIn(point, kZeroWide)) return 0;
  return IsIn(point, kTwoWide) ? 2 : 1;
}

// Takes the first character off `text`; kBroken, and one byte, where it is none.
std::uint32_t NextPoint(std::string_view& text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  bool is_whole = text.size() >= length && first < 0xf5 && (first < 0x80 || first >= 0xc2);
  std::uint32_t point = length == 1 ? first : first & (0xffU >> (length + 1));
  for (std::size_t i = 1; is_whole && i < length; ++i) {
    is_whole = (byte(i) & 0xc0) == 0x80;
    point = point << 6 | (byte(i) & 0x3fU);
  }
  // Neither what has a shorter form, nor halves of a pair, nor what Unicode does not have.
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_half = point >= 0xd800 && point <= 0xdfff;
  is_whole = is_whole && point >= kLeast[length] && point <= 0x10ffff && !is_half;
  text.remove_prefix(is_whole ? length : 1);
  return is_whole ? point : kBroken;
}

// What our own texts hold; a name's other characters have no like in ASCII.
std::string AsciiOf(std::uint32_t point) {
  switch (point) {
    case 0xb5:  // µ
      return "u";
    case 0xb7:  // ·
      return "-";
    default:
      return "?";
  }
}

// One character of `text` as it is shown, and its columns.
struct Glyph {
  std::string text;
  int columns = 1;
};

Glyph NextGlyph(std::string_view& text, Charset charset) {
  const std::string_view before = text;
  const std::uint32_t point = NextPoint(text);
  if (point == kBroken || IsIn(point, kControl)) return {"?", 1};
  if (charset == Charset::kAscii && point >= 0x80) return {AsciiOf(point), 1};
  return {std::string(before.substr(0, before.size() - text.size())), WidthOf(point)};
}

// Mean of values [from, to) that are numbers.
double MeanOf(const std::vector<double>& values, std::size_t from, std::size_t to) {
  double sum = 0;
  int count = 0;
  for (std::size_t i = from; i < to; ++i) {
    if (!std::isfinite(values[i])) continue;
    sum += values[i];
    ++count;
  }
  return count == 0 ? std::nan("") : sum / count;
}

}  // namespace

Charset CharsetOfLocale() {
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(variable);
    if (value == nullptr || *value == '\0') continue;
    const std::string name = absl::AsciiStrToLower(value);
    const bool is_utf8 = absl::StrContains(name, "utf-8") || absl::StrContains(name, "utf8");
    return is_utf8 ? Charset::kUtf8 : Charset::kAscii;
  }
  return Charset::kAscii;
}

std::string InCharset(std::string_view text, Charset charset) {
  if (charset == Charset::kUtf8) return std::string(text);
  std::string shown;
  while (!text.empty()) {
    const std::uint32_t point = NextPoint(text);
    constexpr std::uint32_t kFullBlock = 0x2588;
    constexpr std::uint32_t kHalfBlock = 0x258c;
    constexpr std::uint32_t kThinBlock = 0x258f;
    if (point < 0x80) {
      shown += static_cast<char>(point);
    } else if (point >= kFullBlock && point <= kThinBlock) {
      shown += point <= kHalfBlock ? '#' : ' ';
    } else {
      shown += AsciiOf(point);
    }
  }
  return shown;
}

int ColumnsOf(std::string_view text) {
  int columns = 0;
  while (!text.empty()) columns += NextGlyph(text, Charset::kUtf8).columns;
  return columns;
}

std::string FitText(std::string_view text, int columns, Charset charset) {
  std::string fitted;
  std::size_t cut = 0;  // bytes of `fitted` that leave room for the ellipsis
  int used = 0;
  while (!text.empty()) {
    const Glyph glyph = NextGlyph(text, charset);
    if (used + glyph.columns > columns) {
      if (columns < 1) return {};
      return fitted.substr(0, cut) + (charset == Charset::kUtf8 ? "…" : "~");
    }
    used += glyph.columns;
    fitted += glyph.text;
    if (used < columns) cut = fitted.size();
  }
  return fitted;
}

std::string FitTail(std::string_view text, int columns, Charset charset) {
  std::string whole = FitText(text, INT_MAX, charset);
  if (ColumnsOf(whole) <= columns) return whole;
  if (columns < 1) return {};
  std::string_view tail = whole;
  while (ColumnsOf(tail) > columns - 1) NextPoint(tail);
  return absl::StrCat(charset == Charset::kUtf8 ? "…" : "~", std::string(tail));
}

std::string MeterText(double share, int columns, Charset charset) {
  if (charset == Charset::kUtf8) return BarText(share, columns);
  const double clamped = std::clamp(std::isfinite(share) ? share : 0.0, 0.0, 1.0);
  return std::string(static_cast<std::size_t>(std::lround(clamped * columns)), '#');
}

std::string SparkText(const std::vector<double>& values, double low, double high, int columns,
                      Charset charset) {
  STEPWELL_CHECK(low < high);
  static constexpr const char* kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr const char* kMarks[] = {"_", ".", ":", "-", "=", "+", "*", "#"};
  const std::size_t shown = std::min(values.size(), static_cast<std::size_t>(std::max(columns, 0)));
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) {
    const double value = MeanOf(values, i * values.size() / shown, (i + 1) * values.size() / shown);
    if (std::isnan(value)) {
      text += ' ';
      continue;
    }
    // Of halves: the whole distance may be more than a number holds.
    const double height = (value / 2 - low / 2) / (high / 2 - low / 2);
    const auto level = height > 0 ? static_cast<std::size_t>(std::min(height * 8, 7.0)) : 0;
    text += charset == Charset::kUtf8 ? kBlocks[level] : kMarks[level];
  }
  return text;
}

TopLine& TopLine::Add(std::string_view text, Tone tone, int columns_max) {
  const std::string fitted = FitText(text, std::min(left(), columns_max), look_.charset);
  if (fitted.empty()) return *this;
  text_.append(static_cast<std::size_t>(std::exchange(blanks_, 0)), ' ');
  text_ += look_.paint.In(tone, fitted);
  column_ += ColumnsOf(fitted);
  return *this;
}

TopLine& TopLine::AddRight(std::string_view text, int columns, Tone tone) {
  const std::string fitted = FitText(text, columns, look_.charset);
  PadTo(column_ + columns - ColumnsOf(fitted));
  return Add(fitted, tone);
}

TopLine& TopLine::PadTo(int column) {
  const int wanted = std::min(column, look_.columns) - column_;
  if (wanted <= 0) return *this;
  blanks_ += wanted;
  column_ += wanted;
  return *this;
}

std::string TopLine::Take() { return std::move(text_); }

}  // namespace stepwell::cli
