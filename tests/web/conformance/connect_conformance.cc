// connect_conformance: the HTTP port as the master has it, before the service that connectrpc/conformance calls. Its runner
// starts one of these for each kind of port, says on standard input which, and reads the address from standard output.
// Ends with SIGTERM. No database.
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/tls/tls_reload.h"
#include "connectrpc/conformance/v1/server_compat.pb.h"
#include "server/grpc_server.h"
#include "server/http/connect_envelope.h"
#include "server/http/connect_gateway.h"
#include "server/http/http_server.h"
#include "server/http/rpc_channel.h"
#include "tests/web/conformance/asked_requests.h"
#include "tests/web/conformance/conformance_service.h"

namespace stepwell {
namespace {

namespace pb = connectrpc::conformance::v1;

constexpr char kHost[] = "127.0.0.1";

// A message behind its length in four bytes, big endian, as both sides of the runner's pipes write it.
std::optional<std::string> ReadMessage(std::istream& in) {
  std::string head(4, '\0');
  if (!in.read(head.data(), 4)) return std::nullopt;
  std::uint32_t bytes = 0;
  for (const char c : head) bytes = bytes << 8 | static_cast<std::uint8_t>(c);
  std::string message(bytes, '\0');
  if (!in.read(message.data(), bytes)) return std::nullopt;
  return message;
}

void WriteMessage(const std::string& message, std::ostream& out) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    out.put(static_cast<char>((message.size() >> shift) & 0xff));
  }
  out << message << std::flush;
}

// In the folder where the runner was started, as it starts several of these.
std::string WriteFile(const std::string& name, const std::string& text) {
  const std::string path = absl::StrCat(getpid(), "_", name);
  std::ofstream(path) << text;
  return path;
}

absl::StatusOr<std::shared_ptr<TlsReload>> OpenTls(const pb::ServerCompatRequest& wanted) {
  TlsFiles files;
  files.cert = WriteFile("cert.pem", wanted.server_creds().cert());
  files.key = WriteFile("key.pem", wanted.server_creds().key());
  if (!wanted.client_tls_cert().empty()) files.ca = WriteFile("ca.pem", wanted.client_tls_cert());
  return TlsReload::Open(files, TlsSide::kServer, RealClock::Get());
}

int Fail(const absl::Status& why) {
  std::cerr << why << "\n";
  return 1;
}

int Main() {
  // Before the first thread: all wait for it, and one is told.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);

  pb::ServerCompatRequest wanted;
  const auto text = ReadMessage(std::cin);
  if (!text || !wanted.ParseFromString(*text)) {
    return Fail(absl::InvalidArgumentError("standard input has no ServerCompatRequest"));
  }
  HttpServer::Options options;
  ConnectGateway::Options calls{.serves_get = true, .packs_for_loopback = true};
  if (wanted.message_receive_limit() > 0) {
    calls.request_bytes_max = wanted.message_receive_limit();
    options.body_bytes_max = wanted.message_receive_limit() + EnvelopeHead(0, 0).size();
  }
  pb::ServerCompatResponse told;
  told.set_host(kHost);
  if (wanted.use_tls()) {
    auto tls = OpenTls(wanted);
    if (!tls.ok()) return Fail(tls.status());
    options.tls = *std::move(tls);
    told.set_pem_cert(wanted.server_creds().cert());
  }

  AskedRequests asked;
  ConformanceService service(asked);
  GrpcServer grpc({});
  grpc.Register(&service, pb::ConformanceService::service_full_name());
  RpcChannel rpc(2);
  ConnectGateway gateway(calls, rpc);
  HttpRoutes routes;
  HttpServer http(options);
  gateway.Serve(*pb::UnaryRequest::descriptor()->file()->FindServiceByName("ConformanceService"),
                routes);
  asked.Serve(routes, http.routes());
  absl::Status started = grpc.Bind();
  if (started.ok()) started = grpc.Start();
  if (started.ok()) rpc.Open(grpc.InProcessChannel());
  if (started.ok()) started = http.Start();
  if (!started.ok()) return Fail(started);
  told.set_port(static_cast<std::uint32_t>(http.port()));
  WriteMessage(told.SerializeAsString(), std::cout);

  int signal = 0;
  sigwait(&ends, &signal);
  grpc.Stop(SteadyTime::Now() + absl::Seconds(1));
  rpc.Stop();
  http.Stop();
  return 0;
}

}  // namespace
}  // namespace stepwell

int main() { return stepwell::Main(); }
