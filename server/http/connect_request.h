// ConnectRequest: what a request of the Connect protocol asks, read from its headers and body or, of a GET,
// from its query. A core.
//
//   const auto form = FindConnectForm(request, streams);
//   if (!form) return UnsupportedMediaType();
//   STEPWELL_ASSIGN_OR_RETURN(ConnectRequest call, ReadConnectRequest(request, *form));
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/http/http_message.h"

namespace stepwell {

struct ConnectForm {
  bool is_json = false;
  bool is_stream = false;

  const char* content_type() const {
    if (is_stream) return is_json ? "application/connect+json" : "application/connect+proto";
    return is_json ? "application/json" : "application/proto";
  }
};

struct ConnectRequest {
  ConnectForm form;
  bool accepts_gzip = false;
  // Of the message.
  bool is_gzipped = false;
  std::string message = {};
  // Infinite where none was said.
  absl::Duration timeout = absl::InfiniteDuration();
};

// By Content-Type, of a GET by "encoding"; nothing = 415. `streams`: whether the method answers so.
std::optional<ConnectForm> FindConnectForm(const HttpRequest& request, bool streams);
// kInvalidArgument, kUnimplemented: what the caller is told.
absl::StatusOr<ConnectRequest> ReadConnectRequest(const HttpRequest& request, ConnectForm form);

}  // namespace stepwell
