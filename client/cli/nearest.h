// Nearest: which of the names that there are somebody may have meant. Pure.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace stepwell::cli {

// Those that differ from `wanted` by a slip or two of the finger, the nearest first; at most three.
std::vector<std::string> NearestNames(std::string_view wanted, const std::set<std::string>& names);

// "did you mean 'X' or 'Y'?" of those; empty where none is near.
std::string MeantText(std::string_view wanted, const std::set<std::string>& names);

}  // namespace stepwell::cli
