// RateRefusal: what a caller is told who has used up what he may: kResourceExhausted, which limit, how much is allowed,
// when to come again: as words, and as payloads that GrpcError turns into google.rpc details. Pure functions.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace stepwell {

// `limit`: the setting's name. Reason RATE_LIMIT, metadata "limit" and "allowed", RetryInfo of `wait`.
absl::Status RateRefusal(absl::string_view limit, double allowed, absl::string_view words,
                         absl::Duration wait);

// `status`, with that reason and a RetryInfo of `wait`.
absl::Status ComeAgain(absl::Status status, absl::string_view reason, absl::Duration wait);

// What `status` says of when to come again.
std::optional<absl::Duration> RetryDelayOf(const absl::Status& status);
// For Retry-After: whole seconds, at least one.
std::string RetryAfterText(absl::Duration delay);

}  // namespace stepwell
