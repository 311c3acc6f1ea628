// ToldError: what a client is told of a failure. What failed in the master (its database, an error of its own) has
// SQL, paths and names in its words: these are the log's, and the client gets a request id by which to find them.
// Thread-safe.
//
//   const ToldError told = TellClient(status);
//   response.error = told.message;
#pragma once

#include <string>

#include "absl/status/status.h"

namespace stepwell {

struct ToldError {
  std::string message;
  // Empty where the message is the status' own.
  std::string request_id;
};

// Random, for people to read out: "6f1c2a9e-04b7".
std::string MakeRequestId();

// REQUIRES: not OK. The message of a status that is not ours to hide comes back as it is. Logs, as call_failed; that a database
// does not answer, which is told many times a second while it is down, once a second under one id for all that hear the same.
ToldError TellClient(const absl::Status& status);

}  // namespace stepwell
