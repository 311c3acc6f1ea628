// NearestWord: what somebody who mistyped may have meant. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace stepwell {

// The known word with the fewest edits between, empty if none is near.
std::string NearestWord(absl::string_view word, const std::vector<std::string>& known);

}  // namespace stepwell
