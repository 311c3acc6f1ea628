#include "base/number_units.h"

#include <algorithm>

#include "absl/numeric/int128.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace stepwell {
namespace {

constexpr NumberUnit kBytes[] = {{"PiB", INT64_C(1) << 50},
                                 {"TiB", INT64_C(1) << 40},
                                 {"GiB", INT64_C(1) << 30},
                                 {"MiB", INT64_C(1) << 20},
                                 {"KiB", INT64_C(1) << 10},
                                 {"B", 1},
                                 {"PB", INT64_C(1'000'000'000'000'000)},
                                 {"TB", INT64_C(1'000'000'000'000)},
                                 {"GB", 1'000'000'000},
                                 {"MB", 1'000'000},
                                 {"kB", 1000},
                                 {"", 1}};
// Of a fraction; more are refused.
constexpr std::size_t kDecimalsMax = 18;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

bool TakeNumberPart(std::string_view& text, NumberPart& part) {
  const auto digits = static_cast<std::size_t>(
      std::find_if(text.begin(), text.end(), [](char c) { return !IsDigit(c) && c != '.'; }) -
      text.begin());
  part.digits = text.substr(0, digits);
  double number = 0;
  if (digits == 0 || !IsDigit(text[0]) || !absl::SimpleAtod(part.digits, &number)) return false;
  text.remove_prefix(digits);
  const auto letters = static_cast<std::size_t>(
      std::find_if(text.begin(), text.end(), [](char c) { return IsDigit(c) || c == '.'; }) -
      text.begin());
  part.unit = text.substr(0, letters);
  text.remove_prefix(letters);
  return true;
}

const NumberUnit* FindUnit(std::span<const NumberUnit> units, std::string_view name) {
  const auto found = std::find_if(units.begin(), units.end(),
                                  [&](const NumberUnit& unit) { return unit.name == name; });
  return found == units.end() ? nullptr : &*found;
}

std::optional<std::int64_t> WholeOf(const std::string& digits, const NumberUnit& unit) {
  const std::size_t point = std::min(digits.find('.'), digits.size());
  const std::string decimals = digits.substr(std::min(point + 1, digits.size()));
  std::int64_t number = 0;
  if (decimals.size() > kDecimalsMax ||
      !absl::SimpleAtoi(digits.substr(0, point) + decimals, &number)) {
    return std::nullopt;
  }
  std::int64_t divisor = 1;
  for (std::size_t i = 0; i < decimals.size(); ++i) divisor *= 10;
  const absl::int128 product = absl::int128(number) * unit.factor;
  if (product % divisor != 0 || product / divisor > INT64_MAX) return std::nullopt;
  return static_cast<std::int64_t>(product / divisor);
}

std::optional<std::int64_t> ParseNumber(std::string_view text, std::span<const NumberUnit> units) {
  NumberPart part;
  if (!TakeNumberPart(text, part) || !text.empty()) return std::nullopt;
  const NumberUnit* unit = FindUnit(units, part.unit);
  if (unit == nullptr) return std::nullopt;
  return WholeOf(part.digits, *unit);
}

std::optional<std::int64_t> ParseByteCount(std::string_view text) {
  return ParseNumber(text, kBytes);
}

std::string ByteCountText(std::int64_t bytes) {
  if (bytes == 0) return "0";
  const NumberUnit* best = FindUnit(kBytes, "B");
  for (const NumberUnit& unit : kBytes) {
    if (bytes % unit.factor == 0 && unit.factor > best->factor) best = &unit;
  }
  return absl::StrCat(bytes / best->factor, std::string(best->name));
}

}  // namespace stepwell
