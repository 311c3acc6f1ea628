// ExactTime: JSON's microseconds as whole nanoseconds. A double holds microseconds since 1970 to a quarter
// of one only, so numbers of traces never pass through it. Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stepwell {

// Of a JSON number, also one in quotes: "1732200000000000.125" is 1732200000000000125. Halves of a nanosecond
// are rounded away from zero. Nothing: it is no number, or lies outside of int64.
std::optional<std::int64_t> NsOfMicros(std::string_view number);
// Of a whole JSON number, also one in quotes.
std::optional<std::int64_t> WholeNumber(std::string_view number);

// With three decimals, as Kineto writes them.
void AppendMicros(std::int64_t ns, std::string& text);

}  // namespace stepwell
