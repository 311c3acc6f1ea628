// TokenCalls: the agent's way to TokenService.FetchIngestToken of whichever master: a connection of its own for each call, for
// they are rare and show another token each. The third of the agent's skins over gRPC. Fetch is one thread's, Cancel may
// be called from any.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/tls/tls_reload.h"
#include "stepwell/v1/token.pb.h"

namespace stepwell::agent {

class TokenCalls {
 public:
  virtual ~TokenCalls() = default;

  // Shows `token`; where that is empty the connection's certificate alone. Within seconds.
  virtual absl::StatusOr<v1::FetchIngestTokenResponse> Fetch(
      const std::string& server, const std::string& token,
      const v1::FetchIngestTokenRequest& request) = 0;
  // The call under way ends, and all that come.
  virtual void Cancel() = 0;
};

// Within TLS alone. `tls` is asked at each connection.
std::unique_ptr<TokenCalls> MakeTokenCalls(std::shared_ptr<TlsReload> tls);

}  // namespace stepwell::agent
