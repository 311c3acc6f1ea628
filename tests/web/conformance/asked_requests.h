// AskedRequests: what no service of ours is told of a request, and the suite's service is to tell: its headers, and whether
// it was a GET. The gateway hands on whose token was shown; each request is given one that names its place here. Thread-safe.
//
//   gateway.Serve(service, routes);
//   asked.Serve(routes, http.routes());
//   const HttpRequest request = asked.Of(context);
#pragma once

#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/http/http_routes.h"

namespace grpc {
class ServerContextBase;
}  // namespace grpc

namespace stepwell {

class AskedRequests {
 public:
  // All routes of `inner`, which outlives this, and this `outer`.
  void Serve(const HttpRoutes& inner, HttpRoutes& outer);
  // Without its body. Once for each call; empty of one that did not come over HTTP.
  HttpRequest Of(const grpc::ServerContextBase& call) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  HttpRequest Noted(HttpRequest request) ABSL_LOCKS_EXCLUDED(mu_);

  const HttpGuard guard_{{}};
  absl::Mutex mu_;
  std::map<std::string, HttpRequest> requests_ ABSL_GUARDED_BY(mu_);
  int count_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace stepwell
