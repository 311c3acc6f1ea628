#include "server/http/http_token.h"

#include "absl/strings/str_cat.h"
#include "server/token_guard.h"

namespace stepwell {

std::optional<HttpResponse> RefuseWithoutToken(TokenGuard* tokens, const HttpRequest& head) {
  if (tokens == nullptr) return std::nullopt;
  // Those who ask whether it lives have no token, and learn no more than that.
  if (head.path == "/livez" || head.path == "/readyz") return std::nullopt;
  if (head.HeaderCount("Authorization") == 1 && tokens->Allows(head.Header("Authorization"))) {
    return std::nullopt;
  }
  HttpResponse refusal;
  refusal.status = 401;
  // As a Connect client reads it, too.
  refusal.body = absl::StrCat(R"({"code":"unauthenticated","message":")", kNoToken, "\"}\n");
  // A browser asks its user then, and shows what it was given with each call of the page.
  refusal.headers = {{"WWW-Authenticate", R"(Basic realm="Stepwell: the token as password")"}};
  return refusal;
}

}  // namespace stepwell
