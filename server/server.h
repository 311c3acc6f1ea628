// Server: the whole master, put together: started in order, stopped in reverse.
//
//   STEPWELL_ASSIGN_OR_RETURN(auto server, Server::Start(options, [&] { return stop_asked; }));
//   ...
//   server->Stop();
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/http/http_routes.h"
#include "server/master_state.h"
#include "server/options.h"

namespace stepwell {

struct ServerAddresses {
  std::string grpc;
  std::string http;
  std::string database_url;
  // Of a private PostgreSQL; else empty.
  std::string data_directory = {};
};

class Server {
 public:
  // Returns when gRPC is served; whether as owner or standby, state() says. While a database given by
  // URL does not answer it keeps trying, HTTP up, until `stop_asked`: then kCancelled.
  // kFailedPrecondition and kPermissionDenied: something must be put right first.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServeOptions& options,
                                                       std::function<bool()> stop_asked);
  ~Server();

  ServerAddresses addresses() const;
  MasterState::Snapshot state() const;
  // All paths that the HTTP port answers by a handler of their own.
  std::vector<HttpRoutes::Name> http_routes() const;
  // Last acks, folds, then everything ends; blocks for up to 10 s, and up to
  // 40 s while a database hangs that the master is in the middle of asking. Twice is fine.
  void Stop();

 private:
  struct Parts;  // server.cc
  explicit Server(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace stepwell
