// RetryDelay: when a caller is asked to come again, as the details of a call that failed say it (google.rpc.Status with a
// RetryInfo; of gRPC the trailer "grpc-status-details-bin"). A function; takes any bytes.
//
//   const std::optional<absl::Duration> wait = RetryDelayIn(status.error_details());
#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"

namespace stepwell {

// Nothing where they say none, or are no details. As it was said: below zero and endless ones are the caller's to bound.
std::optional<absl::Duration> RetryDelayIn(const std::string& details_untrusted);

}  // namespace stepwell
