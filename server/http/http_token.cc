#include "server/http/http_token.h"

#include <string>
#include <utility>

#include "server/error_details.h"
#include "server/http/connect_error.h"
#include "server/rate_limits.h"
#include "server/token_guard.h"
#include "server/token_text.h"

namespace stepwell {

std::optional<HttpResponse> RefuseWithoutToken(const HttpServer::Options& options,
                                               HttpRequest& head, bool is_open) {
  TokenGuard* const tokens = options.tokens.get();
  if (tokens == nullptr || is_open) return std::nullopt;
  absl::Status why = absl::UnauthenticatedError(kNoToken);
  const int shown = head.HeaderCount("Authorization");
  if (shown == 1) {
    const std::string_view authorization = head.Header("Authorization");
    auto caller = tokens->Identify(authorization);
    // Who shows none has guessed nothing.
    if (options.rates != nullptr && !ShownToken(authorization).empty()) {
      caller = options.rates->JudgeToken(head.peer, std::move(caller));
    }
    if (caller.ok()) return std::nullopt;
    why = caller.status();
  }
  if (shown == 0) {
    const auto caller = tokens->IdentifyCertificate(head.certificate_names);
    if (caller.ok()) {
      head.headers.emplace_back("Authorization", tokens->InsideAuthorization(**caller));
      return std::nullopt;
    }
    why = caller.status();
  }
  // As a Connect client reads it, too.
  HttpResponse refusal = ConnectErrorAnswer(
      {why.code(), std::string(why.message()), WireDetails(why, DetailsOf(why))});
  if (absl::IsUnauthenticated(why)) {
    // A browser asks its user then, and shows what it was given with each call of the page.
    refusal.headers = {{"WWW-Authenticate", R"(Basic realm="Stepwell: the token as password")"}};
  }
  return refusal;
}

}  // namespace stepwell
