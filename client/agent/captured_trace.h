// CapturedTrace: steps that a master asked for, on their way from RankCapture to the thread that writes and uploads them
// (TraceSender). A value.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"

namespace stepwell::agent {

struct CapturedTrace {
  std::string name;  // of its file
  // Its bytes, made when they are asked for, once; on any thread, some tenths of a second long.
  std::function<std::string()> write;
  std::int32_t epoch = -1;  // -1: not known
  std::int32_t first_batch = -1;
  std::int32_t last_batch = -1;
  // Called on any thread where it could not be kept, once.
  std::function<void(const absl::Status& why)> fail = [](const absl::Status&) {};
};

}  // namespace stepwell::agent
