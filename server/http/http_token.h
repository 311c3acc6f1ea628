// HttpToken: the token of the HTTP port, or the client's certificate where it shows none: asked for before anything
// else of a request is looked at, whatever path it names. What it grants is asked by the services that are called for it. A core.
#pragma once

#include <optional>

#include "server/caller.h"
#include "server/http/http_message.h"
#include "server/http/http_server.h"

namespace stepwell {

// 401, unless one that lives is shown, grants are given to the client's certificate (`head.inside_authorization` opens
// from then on what they do), `is_open` (those who ask whether it lives have none, and learn no more
// than that), or `options.tokens` is null: nobody is asked for one. 503: whether it lives cannot be told now. 429: too many
// wrong ones came from there (WrongTokens); `options.rates` null: they are not counted.
// `caller` is who was let in; null where nobody is asked.
std::optional<HttpResponse> RefuseWithoutToken(const HttpServer::Options& options,
                                               HttpRequest& head, bool is_open, Caller& caller);

}  // namespace stepwell
