// GrpcServer: the gRPC port. Accepts connections itself and hands them to gRPC: Debian's gRPC stops
// listening for ever once accept() fails for want of descriptors, this loop does not; and it bounds
// the connections of one address, and what comes on those where nobody is known (StrangerWatch). Health is built
// in; reflection where nobody is asked for a token. Thread "accept".
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/sparing_log.h"
#include "base/steady_time.h"
#include "base/tls/tls_reload.h"
#include "base/worker.h"
#include "server/access_control.h"
#include "server/connection_socket.h"
#include "server/grpc_channelz.h"
#include "server/grpc_doorkeeper.h"
#include "server/listen_socket.h"
#include "server/memory_debt.h"
#include "server/rate_limits.h"
#include "server/stranger_watch.h"

namespace stepwell {

class GrpcServer {
 public:
  struct Options {
    std::string host = "127.0.0.1";
    int port = 0;
    int connections_per_address_max = 256;
    int threads_max = 512;
    // Of a stream, what its client may send before it is read; of all that gRPC holds, what it ends calls beyond.
    std::int64_t window_bytes = 256 << 10;
    std::int64_t quota_bytes = 512 << 20;
    // Called by the thread about each MemoryPressure::kLookEach: it is there, waits for nothing else, and gives memory back anyway.
    std::function<void(SteadyTime now)> on_look = nullptr;
    // Null: plain.
    std::shared_ptr<TlsReload> tls = nullptr;
    // Null: new connections are not counted.
    std::shared_ptr<RateLimits> rates = nullptr;
  };
  explicit GrpcServer(Options options) : options_(std::move(options)) {}
  ~GrpcServer();

  // First of all, so that a port in use is found before anything is started. kUnavailable names it.
  absl::Status Bind();
  // Before Start. `service` outlives this; health checks know it under `name`.
  void Register(grpc::Service* service, std::string name) {
    services_.push_back({service, std::move(name)});
  }
  // Accepts from here on. `access` says who calls, where it asks, and for whom what is answered is counted; null: nobody is
  // asked, nothing counted, else it outlives this. REQUIRES: Bind succeeded.
  absl::Status Start(const AccessControl* access = nullptr);
  // Calls of the same services from within the process. REQUIRES: started.
  std::shared_ptr<grpc::Channel> InProcessChannel();
  // What health checks answer. Thread-safe; nothing once stopped.
  void SetServing(bool serving);
  // Takes no more connections and calls; those under way may end until `deadline`, then they are
  // cancelled. Blocks. Twice is fine.
  void StopAccepting();
  void Stop(SteadyTime deadline);
  int port() const { return port_; }
  // For the AccessControl that Start is given. Lives as long as this.
  StrangerWatch& strangers() { return strangers_; }

 private:
  using Acceptor = grpc::experimental::ExternalConnectionAcceptor;
  struct NamedService {
    grpc::Service* service;
    std::string name;
  };

  void AcceptLoop();
  // One that waits, or a refusal of it. False: there is none, or no means for it.
  bool AcceptOne();
  // Counts the living connections of an address, as AddressKey; false when there is no place for one more.
  bool HasPlace(const std::string& address);
  // Null: it is, and strangers_ knows of it.
  const char* WhyNotTaken(int fd, const std::string& address, const std::string& end);
  void RefuseConnection(int fd, const std::string& address, const char* why);
  void LookAtStrangers(SteadyTime now);
  void TellEnded(const std::string& address, const char* why);

  const Options options_;
  std::vector<NamedService> services_;
  std::optional<ListenSocket> socket_;
  std::unique_ptr<Acceptor> acceptor_;
  std::map<std::string, std::vector<ConnectionSocket>> connections_;  // confined to the thread
  KernelSockets sockets_;
  ChannelzCalls calls_;
  StrangerWatch strangers_{sockets_, calls_};
  MemoryDebt memory_debt_;  // the thread's
  SparingLog refused_log_;
  SparingLog failed_log_;
  SparingLog ended_log_;
  int port_ = 0;
  // Those from here on are left to what the master itself opens.
  int descriptors_max_ = 0;
  int wake_fd_ = -1;
  Worker worker_;
  // Before the server, which asks for certificates as long as it lives.
  std::shared_ptr<grpc::ServerCredentials> credentials_;
  // Likewise. Null: gRPC's own health service answers.
  std::unique_ptr<GrpcDoorkeeper> doorkeeper_;
  // SetServing comes from the ownership thread while another stops this.
  absl::Mutex mu_;
  std::unique_ptr<grpc::Server> server_ ABSL_GUARDED_BY(mu_);
};

}  // namespace stepwell
