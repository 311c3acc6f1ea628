// Complaint: what was wrong with one message, for programs (code, reason) and for people (message:
// which field, what was wrong, what is allowed). Becomes a Refused, a Rejection or a gRPC status.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace stepwell {

struct Complaint {
  absl::StatusCode code = absl::StatusCode::kInvalidArgument;
  // UPPER_SNAKE_CASE, stable.
  std::string reason;
  std::string message;
  // When to come again, where that is known.
  std::optional<absl::Duration> retry_delay = {};
};

// Nothing to complain about = empty.
using MaybeComplaint = std::optional<Complaint>;

inline Complaint Invalid(std::string reason, std::string message) {
  return {absl::StatusCode::kInvalidArgument, std::move(reason), std::move(message)};
}

// Early return for functions that answer MaybeComplaint.
#define STEPWELL_RETURN_IF_COMPLAINT(expression)                                \
  do {                                                                          \
    if (MaybeComplaint stepwell_complaint = (expression); stepwell_complaint) { \
      return stepwell_complaint;                                                \
    }                                                                           \
  } while (false)

}  // namespace stepwell
