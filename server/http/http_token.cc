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
                                               HttpRequest& head, bool is_open, Caller& caller) {
  caller = nullptr;
  TokenGuard* const tokens = options.tokens.get();
  if (tokens == nullptr || is_open) return std::nullopt;
  absl::Status why = absl::UnauthenticatedError(kNoToken);
  const int shown = head.HeaderCount("Authorization");
  if (shown == 1) {
    const std::string_view authorization = head.Header("Authorization");
    auto found = tokens->Identify(authorization);
    // Who shows none has guessed nothing.
    if (options.rates != nullptr && !ShownToken(authorization).empty()) {
      found = options.rates->JudgeToken(head.peer, std::move(found));
    }
    if (found.ok()) found = tokens->Until(*found, head.certificate_end_us);
    if (found.ok()) {
      caller = *std::move(found);
      return std::nullopt;
    }
    why = found.status();
  }
  if (shown == 0) {
    auto found = tokens->IdentifyCertificate(head.certificate_names);
    if (found.ok()) found = tokens->Until(*found, head.certificate_end_us);
    if (found.ok()) {
      head.inside_authorization = tokens->InsideAuthorization(**found);
      caller = *std::move(found);
      return std::nullopt;
    }
    why = found.status();
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
