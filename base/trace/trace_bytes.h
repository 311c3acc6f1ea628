// TraceBytes: where a trace's bytes go, piece by piece, so that none is ever whole in memory.
#pragma once

#include <functional>
#include <string_view>

#include "absl/status/status.h"

namespace stepwell {

// A status ends the reading; what was handed over stays valid during the call alone.
using TakeBytes = std::function<absl::Status(std::string_view bytes)>;

}  // namespace stepwell
