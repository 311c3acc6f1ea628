// ConnectError: failures as the Connect protocol writes them: a word, an HTTP status, JSON. A core.
//
//   response.status = ConnectHttpStatus(status.code);
//   response.body = ConnectErrorJson(status).dump();
#pragma once

#include <string_view>

#include "nlohmann/json_fwd.hpp"
#include "server/http/http_message.h"
#include "server/http/rpc_status.h"

namespace stepwell {

// "invalid_argument". REQUIRES: not OK; a number that is no code counts as unknown.
std::string_view ConnectCodeName(absl::StatusCode code);
int ConnectHttpStatus(absl::StatusCode code);

// {"code", "message", "details": [{"type", "value", "debug"}]}; "debug" where we know the type.
nlohmann::json ConnectErrorJson(const RpcStatus& status);
// Of a unary call, or of any before its answer has begun. REQUIRES: not OK.
HttpResponse ConnectErrorAnswer(const RpcStatus& status);
// The payload of the last envelope of a stream: {} or {"error": …}.
std::string ConnectEndOfStream(const RpcStatus& status);

}  // namespace stepwell
