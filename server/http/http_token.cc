#include "server/http/http_token.h"

#include <string>

#include "nlohmann/json.hpp"
#include "server/token_guard.h"

namespace stepwell {

std::optional<HttpResponse> RefuseWithoutToken(TokenGuard* tokens, HttpRequest& head,
                                               bool is_open) {
  if (tokens == nullptr || is_open) return std::nullopt;
  absl::Status why = absl::UnauthenticatedError(kNoToken);
  const int shown = head.HeaderCount("Authorization");
  if (shown == 1) {
    why = tokens->Identify(head.Header("Authorization")).status();
    if (why.ok()) return std::nullopt;
  }
  if (shown == 0) {
    const auto caller = tokens->IdentifyCertificate(head.certificate_names);
    if (caller.ok()) {
      head.headers.emplace_back("Authorization", tokens->InsideAuthorization(**caller));
      return std::nullopt;
    }
    why = caller.status();
  }
  const bool is_down = absl::IsUnavailable(why);
  HttpResponse refusal;
  refusal.status = is_down ? 503 : 401;
  // As a Connect client reads it, too.
  refusal.body = nlohmann::json{{"code", is_down ? "unavailable" : "unauthenticated"},
                                {"message", std::string(why.message())}}
                     .dump() +
                 "\n";
  if (is_down) {
    refusal.headers = {{"Retry-After", "1"}};
  } else {
    // A browser asks its user then, and shows what it was given with each call of the page.
    refusal.headers = {{"WWW-Authenticate", R"(Basic realm="Stepwell: the token as password")"}};
  }
  return refusal;
}

}  // namespace stepwell
