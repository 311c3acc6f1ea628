#include "base/trace/exact_time.h"

#include <charconv>
#include <limits>

#include "absl/strings/str_cat.h"

namespace stepwell {
namespace {

constexpr int kDigitsMax = 40;  // of what can still lie within int64

std::string_view Unquoted(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    text.remove_prefix(1);
    text.remove_suffix(1);
  }
  return text;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// A decimal number: digits without a point, and the power of ten that they are multiplied by.
struct Decimal {
  bool is_negative = false;
  std::string_view whole;
  std::string_view fraction;
  int exponent = 0;
};

std::optional<Decimal> ParseDecimal(std::string_view text) {
  Decimal decimal;
  if (!text.empty() && text.front() == '-') {
    decimal.is_negative = true;
    text.remove_prefix(1);
  }
  const auto take_digits = [&] {
    std::size_t count = 0;
    while (count < text.size() && IsDigit(text[count])) ++count;
    const std::string_view digits = text.substr(0, count);
    text.remove_prefix(count);
    return digits;
  };
  decimal.whole = take_digits();
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    decimal.fraction = take_digits();
  }
  if (decimal.whole.empty() && decimal.fraction.empty()) return std::nullopt;
  if (!text.empty() && (text.front() == 'e' || text.front() == 'E')) {
    text.remove_prefix(1);
    if (!text.empty() && text.front() == '+') text.remove_prefix(1);
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), decimal.exponent);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    text = {};
  }
  if (!text.empty()) return std::nullopt;
  return decimal;
}

// Times ten to the power `shift`, to the nearest whole.
std::optional<std::int64_t> Shifted(const Decimal& decimal, int shift) {
  const std::size_t digit_count = decimal.whole.size() + decimal.fraction.size();
  const auto digit = [&](std::size_t i) {
    return i < decimal.whole.size() ? decimal.whole[i] : decimal.fraction[i - decimal.whole.size()];
  };
  // Digits in front of the point of the result.
  const std::int64_t kept =
      static_cast<std::int64_t>(decimal.whole.size()) + decimal.exponent + shift;
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
  std::uint64_t magnitude = 0;
  std::int64_t significant = 0;
  for (std::int64_t i = 0; i < kept; ++i) {
    const bool is_given = i < static_cast<std::int64_t>(digit_count);
    if (!is_given && magnitude == 0) break;
    const auto value =
        static_cast<std::uint64_t>(is_given ? digit(static_cast<std::size_t>(i)) - '0' : 0);
    if (magnitude != 0 || value != 0) ++significant;
    if (significant > kDigitsMax || magnitude > (kMax - value) / 10) return std::nullopt;
    magnitude = magnitude * 10 + value;
  }
  const bool rounds_up = kept >= 0 && kept < static_cast<std::int64_t>(digit_count) &&
                         digit(static_cast<std::size_t>(kept)) >= '5';
  if (rounds_up) {
    if (magnitude == kMax) return std::nullopt;
    ++magnitude;
  }
  const auto value = static_cast<std::int64_t>(magnitude);
  return decimal.is_negative ? -value : value;
}

}  // namespace

std::optional<std::int64_t> NsOfMicros(std::string_view number) {
  const std::optional<Decimal> decimal = ParseDecimal(Unquoted(number));
  return decimal.has_value() ? Shifted(*decimal, 3) : std::nullopt;
}

std::optional<std::int64_t> WholeNumber(std::string_view number) {
  number = Unquoted(number);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
  return value;
}

void AppendMicros(std::int64_t ns, std::string& text) {
  const bool is_negative = ns < 0;
  const std::uint64_t magnitude =
      is_negative ? 0 - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
  const std::uint64_t fraction = magnitude % 1000;
  absl::StrAppend(&text, is_negative ? "-" : "", magnitude / 1000, fraction < 100 ? ".0" : ".",
                  fraction < 10 ? "0" : "", fraction);
}

}  // namespace stepwell
