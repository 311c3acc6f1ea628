// Units: numbers as people read them. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::cli {

// 1234567 -> "1,234,567".
std::string CountText(std::int64_t count);
// "1 step", "1,200 steps".
std::string Plural(std::int64_t count, std::string_view noun);
// 0.0344 -> "34.4 ms"; three significant digits, "ns" ... "d".
std::string SecondsText(double seconds);
// A value with its unit: bytes and bytes/s by 1024, seconds as above, percent as "42.0 %", others
// with four significant digits and the unit behind ("1" is left out).
std::string ValueText(double value, std::string_view unit);
// All of `shares` (0 ... 1) in percent with one decimal, so that the texts add up to what the
// shares add up to: the largest remainders are rounded up.
std::vector<std::string> PercentTexts(const std::vector<double>& shares);
// "2026-11-20 10:01:22 UTC"; 0 is "-".
std::string TimeText(std::int64_t time_us);
// "2026-11-20T10:01:22.123456Z".
std::string IsoTimeText(std::int64_t time_us);
// A bar of `share` (0 ... 1) of `columns` columns, in eighths of a column.
std::string BarText(double share, int columns);

}  // namespace stepwell::cli
