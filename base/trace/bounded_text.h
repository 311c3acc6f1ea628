// BoundedText: names out of a trace that stay in memory while it is read. In a hostile one they are as long as an
// event may be. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace stepwell {

inline constexpr std::size_t kTraceTextBytesMax = 256;

// For people: at most that many bytes, no character cut, "..." where something is missing.
std::string CutText(std::string_view text);
// To tell texts apart: itself, or where it is longer its begin and its digest.
std::string KeyOfText(std::string_view text);

}  // namespace stepwell
