// NumberUnits: numbers with a unit behind, as people write them: 50GiB, 1.5TB, 30d. What is printed can be given
// again and means the same. Pure functions.
//
//   ParseByteCount("64MiB")      // 67'108'864
//   ByteCountText(67'108'864)    // "64MiB"
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace stepwell {

struct NumberUnit {
  std::string_view name;
  std::int64_t factor = 1;
};

// Digits with at most one point, and the letters behind them.
struct NumberPart {
  std::string digits;
  std::string_view unit;
};

// Takes "30d" off the front of `text`. False where there is none.
bool TakeNumberPart(std::string_view& text, NumberPart& part);
// nullptr where none has that name.
const NumberUnit* FindUnit(std::span<const NumberUnit> units, std::string_view name);
// So many of the unit; nothing where that is no whole number, or more than 63 bits hold.
std::optional<std::int64_t> WholeOf(const std::string& digits, const NumberUnit& unit);
// All of `text` as one number with one unit of `units`; nothing likewise.
std::optional<std::int64_t> ParseNumber(std::string_view text, std::span<const NumberUnit> units);

// B, KiB ... PiB (by 1024), kB ... PB (by 1000), or none of them.
std::optional<std::int64_t> ParseByteCount(std::string_view text);
// In the unit of which it is the fewest whole ones.
std::string ByteCountText(std::int64_t bytes);

}  // namespace stepwell
