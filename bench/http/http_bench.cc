// http_bench: what does a call over HTTP cost beside the same over gRPC? One message of 100,000 samples, made
// anew for each call, asked for in turns by gRPC and by the Connect protocol in binary, both over loopback;
// and, to see what a browser that asks for JSON waits for, in JSON. No database: what a read costs there
// comes on top of both and makes the ratio smaller.
#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/grpc_server.h"
#include "server/http/connect_envelope.h"
#include "server/http/connect_gateway.h"
#include "server/http/http_server.h"
#include "server/http/rpc_channel.h"
#include "stepwell/v1/query.grpc.pb.h"

namespace stepwell {
namespace {

constexpr int kSamples = 100'000;

class Service final : public v1::QueryService::Service {
 public:
  grpc::Status ReadSamples(grpc::ServerContext*, const v1::ReadSamplesRequest*,
                           grpc::ServerWriter<v1::ReadSamplesResponse>* writer) override {
    v1::ReadSamplesResponse response;
    for (int i = 0; i < kSamples; ++i) {
      response.add_timestamps_us(1'700'000'000'000'000 + i * 1000);
      response.add_batches(i);
      response.add_values(i * 0.37);
    }
    writer->Write(response);
    return grpc::Status::OK;
  }
};

// A connection that is kept.
class Http {
 public:
  explicit Http(int port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      throw std::runtime_error("no connection");
    }
  }
  ~Http() { close(fd_); }

  // The bytes of the stream's messages, framing included.
  std::size_t Ask(const char* type, const std::string& message) {
    const std::string body = EnvelopeText(0, message);
    const std::string request = absl::StrCat(
        "POST /stepwell.v1.QueryService/ReadSamples HTTP/1.1\r\nHost: localhost\r\nContent-Type: ",
        type, "\r\nContent-Length: ", body.size(), "\r\n\r\n", body);
    if (send(fd_, request.data(), request.size(), MSG_NOSIGNAL) < 0) {
      throw std::runtime_error("cannot send");
    }
    Line();
    while (!Line().empty()) {
    }
    std::size_t bytes = 0;
    for (;;) {
      const std::string line = Line();
      const auto chunk = std::stoul(line, nullptr, 16);
      Take(chunk + 2);
      if (chunk == 0) return bytes;
      bytes += chunk;
    }
  }

 private:
  void Fill() {
    if (at_ == have_) at_ = have_ = 0;
    const auto count = recv(fd_, block_ + have_, sizeof block_ - have_, 0);
    if (count <= 0) throw std::runtime_error("the connection ended");
    have_ += static_cast<std::size_t>(count);
  }
  std::string Line() {
    std::string line;
    for (;;) {
      if (at_ == have_) Fill();
      const char c = block_[at_++];
      if (c == '\n') return line;
      if (c != '\r') line.push_back(c);
    }
  }
  void Take(std::size_t bytes) {
    while (bytes > 0) {
      if (at_ == have_) Fill();
      const std::size_t now = std::min(bytes, have_ - at_);
      at_ += now;
      bytes -= now;
    }
  }

  const int fd_;
  char block_[256 << 10];
  std::size_t at_ = 0;
  std::size_t have_ = 0;
};

template <typename Do>
double Milliseconds(const Do& what) {
  const auto begin = std::chrono::steady_clock::now();
  what();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void Run(int port, const std::shared_ptr<grpc::Channel>& channel, int pairs) {
  const auto stub = v1::QueryService::NewStub(channel);
  const auto http = std::make_unique<Http>(port);
  // The client parses in both: what it does with HTTP's bytes is left out, so they are parsed here, too.
  const auto by_grpc = [&] {
    grpc::ClientContext context;
    v1::ReadSamplesResponse response;
    const auto reader = stub->ReadSamples(&context, {});
    while (reader->Read(&response)) {
    }
    if (!reader->Finish().ok()) throw std::runtime_error("gRPC failed");
  };
  const std::string parsed = [&] {
    v1::ReadSamplesResponse response;
    grpc::ClientContext context;
    stub->ReadSamples(&context, {})->Read(&response);
    return response.SerializeAsString();
  }();
  const auto by_http = [&] {
    v1::ReadSamplesResponse response;
    if (http->Ask("application/connect+proto", "") < parsed.size()) {
      throw std::runtime_error("too little came");
    }
    response.ParseFromString(parsed);
  };
  std::vector<double> grpc_ms;
  std::vector<double> http_ms;
  std::vector<double> json_ms;
  std::vector<double> ratios;
  for (int i = 0; i < pairs + 3; ++i) {
    const bool first = i % 2 == 0;
    double ours = first ? Milliseconds(by_http) : 0;
    const double theirs = Milliseconds(by_grpc);
    if (!first) ours = Milliseconds(by_http);
    if (i < 3) continue;  // warming up
    http_ms.push_back(ours);
    grpc_ms.push_back(theirs);
    ratios.push_back(ours / theirs);
    if (i % 10 == 0) {
      json_ms.push_back(Milliseconds([&] { http->Ask("application/connect+json", "{}"); }));
    }
  }
  std::sort(ratios.begin(), ratios.end());
  std::fprintf(stderr, "http: %d samples: gRPC %.2f ms, Connect %.2f ms, Connect in JSON %.1f ms\n",
               kSamples, Median(grpc_ms), Median(http_ms), json_ms.empty() ? 0 : Median(json_ms));
  std::printf(
      "{\"name\": \"http.binary\", \"value\": %.4g, \"unit\": \"ratio\", \"against\": "
      "\"the same answer of 100,000 samples over gRPC\", \"bar\": \"<= 1.15\", "
      "\"raw\": {\"ours\": %.4g, \"theirs\": %.4g}, \"n\": %zu, \"spread\": [%.4g, %.4g]}\n",
      Median(ratios), Median(http_ms), Median(grpc_ms), ratios.size(), ratios[ratios.size() / 10],
      ratios[ratios.size() * 9 / 10]);
}

int Main(bool quick) {
  Service service;
  GrpcServer grpc({});
  grpc.Register(&service, v1::QueryService::service_full_name());
  RpcChannel rpc(2);
  ConnectGateway gateway({}, rpc);
  HttpServer http({});
  gateway.Serve(*v1::ListTrialsRequest::descriptor()->file()->FindServiceByName("QueryService"),
                http.routes());
  if (!grpc.Bind().ok() || !grpc.Start().ok() || !http.Start().ok()) return 1;
  rpc.Open(grpc.InProcessChannel());
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(64 << 20);
  Run(http.port(),
      grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", grpc.port()),
                                grpc::InsecureChannelCredentials(), arguments),
      quick ? 60 : 600);
  grpc.Stop(SteadyTime::Now());
  rpc.Stop();
  http.Stop();
  return 0;
}

}  // namespace
}  // namespace stepwell

int main(int argc, char** argv) {
  return stepwell::Main(argc > 1 && std::strcmp(argv[1], "--quick") == 0);
}
