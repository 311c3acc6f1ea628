// OneFileServer: one file over HTTP on the loopback, for one page of a browser: Perfetto's, which takes traces
// from 127.0.0.1:9001 alone. Its address holds a random part, so that nobody else on the machine guesses it.
// Confined to one thread.
//
//   STEPWELL_ASSIGN_OR_RETURN(auto server, OneFileServer::Open({.file = file.descriptor(), .port = 9001, ...}));
//   std::cout << server->url();
//   STEPWELL_RETURN_IF_ERROR(server->ServeOnce(deadline));   // until it was fetched whole
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/steady_time.h"

namespace stepwell::cli {

class OneFileServer {
 public:
  struct Options {
    // Open for reading, and longer than the server; its offset is left alone.
    int file = -1;
    // In its address.
    std::string name = {};
    int port = 0;  // 0 = any
    // The page that may read it.
    std::string origin = {};
  };
  // kUnavailable: the port is in use.
  static absl::StatusOr<std::unique_ptr<OneFileServer>> Open(Options options);
  ~OneFileServer();
  OneFileServer(const OneFileServer&) = delete;
  OneFileServer& operator=(const OneFileServer&) = delete;

  const std::string& url() const { return url_; }
  // The one that is listened on.
  int port() const { return port_; }
  // kDeadlineExceeded: nobody fetched it whole by then.
  [[nodiscard]] absl::Status ServeOnce(SteadyTime deadline);

 private:
  OneFileServer(Options options, int socket, int port);

  // Whether the file went whole.
  bool Answer(int connection, SteadyTime deadline);
  std::string HeadOf(std::string_view request, bool& sends_file) const;
  bool SendFile(int connection, SteadyTime deadline) const;

  const Options options_;
  const int socket_;
  const int port_;
  const std::string host_;
  const std::string target_;
  const std::string url_;
};

}  // namespace stepwell::cli
