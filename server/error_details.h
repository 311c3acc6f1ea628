// ErrorDetails: what a failure tells programs beside its words: google.rpc details (ErrorInfo always, RetryInfo where coming
// again helps, BadRequest where a field is wrong), for gRPC's trailers and for Connect's JSON. Pure functions.
//
//   status.details = WireDetails(failure, DetailsOf(failure));
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace stepwell {

struct FieldViolation {
  std::string field;
  std::string description;
};

struct ErrorDetails {
  // UPPER_SNAKE_CASE; empty = the code's name.
  std::string reason;
  std::optional<absl::Duration> retry_delay;
  std::vector<FieldViolation> violations;
  // What else a program should know, by name.
  std::map<std::string, std::string> metadata = {};
};

// Of its payloads: the reason of "stepwell/reason", metadata of "stepwell/metadata/NAME", what RateRefusal says of coming
// again; kUnavailable comes with a second.
ErrorDetails DetailsOf(const absl::Status& status);
// As it stands in trailers and on pages: bounded, UTF-8.
std::string ToldMessage(const absl::Status& status);
// A serialized google.rpc.Status.
std::string WireDetails(const absl::Status& status, const ErrorDetails& details);

}  // namespace stepwell
