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
// The header Retry-After, or nothing, by a failure's details.
HttpHeaders RetryHeaders(const RpcStatus& status);
// Metadata as headers of an answer, values of one name in one line, bytes in base64: what began it, and what ended a unary
// one, as Trailer-NAME.
HttpHeaders LeadingHeaders(const RpcMetadata& metadata);
HttpHeaders TrailerHeaders(const RpcStatus& status);
// Of a unary call, or of any before its answer has begun; with Retry-After where its details say when to come again.
// REQUIRES: not OK.
HttpResponse ConnectErrorAnswer(const RpcStatus& status);
// Of a page that is no call, for which others were made: 404, 429 or 503, {"error": text}.
HttpResponse PlainErrorAnswer(const RpcStatus& status);
// The payload of the last envelope of a stream: {"error": …, "metadata": {NAME: [VALUE, …]}}, each where there is any.
std::string ConnectEndOfStream(const RpcStatus& status);

}  // namespace stepwell
