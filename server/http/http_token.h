// HttpToken: the token of the HTTP port: asked for before anything else of a request is looked at, whatever
// path it names. A core.
#pragma once

#include <optional>

#include "server/http/http_message.h"

namespace stepwell {

class TokenGuard;

// 401, unless it is shown, the path is a probe's, or `tokens` is null: nobody is asked for one.
std::optional<HttpResponse> RefuseWithoutToken(TokenGuard* tokens, const HttpRequest& head);

}  // namespace stepwell
