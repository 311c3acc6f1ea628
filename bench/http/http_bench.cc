// http_bench: what does HTTP's door add to a call? 115,200 samples of one series, read from a master that
// holds them, asked for in turns by gRPC and by the Connect protocol in binary, over loopback, until the client
// has parsed them; and, to see what a program that asks for JSON waits for, in JSON.
#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/load/bench_run.h"
#include "bench/load/loaded_master.h"
#include "bench/load/pairs.h"
#include "bench/load/tick_load.h"
#include "server/http/connect_envelope.h"
#include "stepwell/v1/query.grpc.pb.h"

namespace stepwell::bench {
namespace {

constexpr char kTrial[] = "day";
constexpr int kHours = 4;  // of a rank with 8 steps a second
constexpr std::size_t kSamples = 115'200;
constexpr std::size_t kEnvelopeHeadBytes = 5;

// A connection that is kept.
class Http {
 public:
  // `address` is of this machine.
  explicit Http(const std::string& address) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int port = std::atoi(address.substr(address.rfind(':') + 1).c_str());
    place.sin_port = htons(static_cast<std::uint16_t>(port));
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd_, reinterpret_cast<const sockaddr*>(&place), sizeof place) != 0) {
      throw std::runtime_error("no connection");
    }
  }
  ~Http() { close(fd_); }

  // The stream's messages with their framing.
  const std::string& Ask(const char* type, const std::string& message) {
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
    body_.clear();
    for (;;) {
      const auto chunk = std::stoul(Line(), nullptr, 16);
      Take(chunk);
      Line();
      if (chunk == 0) return body_;
    }
  }

 private:
  void Fill() {
    at_ = have_ = 0;
    const auto count = recv(fd_, block_, sizeof block_, 0);
    if (count <= 0) throw std::runtime_error("the connection ended");
    have_ = static_cast<std::size_t>(count);
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
      body_.append(block_ + at_, now);
      at_ += now;
      bytes -= now;
    }
  }

  const int fd_;
  char block_[256 << 10];
  std::size_t at_ = 0;
  std::size_t have_ = 0;
  std::string body_;
};

// How many samples the messages of a stream have.
std::size_t CountIn(std::string_view framed) {
  std::size_t samples = 0;
  while (framed.size() > kEnvelopeHeadBytes) {
    std::size_t bytes = 0;
    for (int i = 1; i < 5; ++i) {
      bytes = bytes << 8 | static_cast<unsigned char>(framed[static_cast<std::size_t>(i)]);
    }
    const std::string_view payload = framed.substr(kEnvelopeHeadBytes, bytes);
    v1::ReadSamplesResponse message;
    if ((framed[0] & kEnvelopeEndOfStream) == 0) {
      message.ParseFromArray(payload.data(), static_cast<int>(payload.size()));
    }
    samples += static_cast<std::size_t>(message.values_size());
    framed.remove_prefix(kEnvelopeHeadBytes + payload.size());
  }
  return samples;
}

template <typename Do>
double Milliseconds(const Do& what) {
  const auto begin = std::chrono::steady_clock::now();
  what();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

void DieUnlessAll(std::size_t samples) {
  DieUnless(samples == kSamples ? absl::OkStatus()
                                : absl::InternalError(absl::StrCat(samples, " samples came")));
}

v1::ReadSamplesRequest OneSeries() {
  v1::ReadSamplesRequest request;
  request.mutable_trial()->set_external_id(kTrial);
  request.mutable_selector()->set_metric_group("timing");
  request.mutable_selector()->set_name("scope_0");
  request.set_page_samples(100'000);
  return request;
}

void Run(const LoadedMaster& master, int pair_count) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(64 << 20);
  const auto stub = v1::QueryService::NewStub(grpc::CreateCustomChannel(
      master.grpc_address(), grpc::InsecureChannelCredentials(), arguments));
  const auto http = std::make_unique<Http>(master.http_address());
  const v1::ReadSamplesRequest request = OneSeries();
  const std::string request_bytes = request.SerializeAsString();
  const std::string request_json = absl::StrCat(
      R"({"trial":{"externalId":")", kTrial,
      R"("},"selector":{"metricGroup":"timing","name":"scope_0"},"pageSamples":100000})");
  const auto by_grpc = [&] {
    grpc::ClientContext context;
    v1::ReadSamplesResponse response;
    std::size_t samples = 0;
    const auto reader = stub->ReadSamples(&context, request);
    while (reader->Read(&response)) samples += static_cast<std::size_t>(response.values_size());
    const grpc::Status status = reader->Finish();
    DieUnless(status.ok() ? absl::OkStatus() : absl::InternalError(status.error_message()));
    DieUnlessAll(samples);
  };
  const auto by_http = [&] {
    DieUnlessAll(CountIn(http->Ask("application/connect+proto", request_bytes)));
  };
  Pairs pairs;
  std::vector<double> json_ms;
  for (int i = 0; i < pair_count + 3; ++i) {
    const bool is_first = i % 2 == 0;
    double ours = is_first ? Milliseconds(by_http) : 0;
    const double theirs = Milliseconds(by_grpc);
    if (!is_first) ours = Milliseconds(by_http);
    if (i < 3) continue;  // warming up
    pairs.ours.push_back(ours);
    pairs.theirs.push_back(theirs);
    if (i % 10 == 0) {
      json_ms.push_back(Milliseconds([&] { http->Ask("application/connect+json", request_json); }));
    }
  }
  std::fprintf(stderr,
               "http: %zu samples: gRPC %.2f ms, Connect %.2f ms, Connect in JSON %.1f ms\n",
               kSamples, Median(pairs.theirs), Median(pairs.ours), Median(json_ms));
  PrintRatio("http.binary", "the same answer of 115,200 samples over gRPC", Promised("<= 1.15"),
             pairs);
}

int Main(bool is_quick) {
  StayOnTwoCores();
  const TickLoad load = MakeDay(0, kHours);
  LoadedMaster master(kTrial, load, {"--fold-interval", "1s"});
  master.Load(load);
  master.Close();
  master.Settle();
  Run(master, is_quick ? 60 : 600);
  return 0;
}

}  // namespace
}  // namespace stepwell::bench

int main(int argc, char** argv) {
  return stepwell::bench::Main(argc > 1 && std::strcmp(argv[1], "--quick") == 0);
}
