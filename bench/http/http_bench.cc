// http_bench: what does HTTP's door add to a call? Of a master that holds them, asked for in turns by gRPC and by the
// Connect protocol in binary, over loopback, until the client has parsed them: 115,200 samples of one series, a stream;
// 120,000 values of buckets of two, one answer, which is what the page asks for. And, to see what a program that asks for
// JSON waits for, the samples in JSON.
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
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/load/asked_options.h"
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
constexpr std::size_t kBucketValues = 119'000;  // a bucket at an end may be empty
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

  // Of a stream its messages with their framing.
  const std::string& Ask(const char* method, const char* type, const std::string& body) {
    const std::string request = absl::StrCat("POST /stepwell.v1.QueryService/", method,
                                             " HTTP/1.1\r\nHost: localhost\r\nContent-Type: ", type,
                                             "\r\nContent-Length: ", body.size(), "\r\n\r\n", body);
    if (send(fd_, request.data(), request.size(), MSG_NOSIGNAL) < 0) {
      throw std::runtime_error("cannot send");
    }
    std::optional<std::size_t> length;
    for (std::string line = Line(); !line.empty(); line = Line()) {
      constexpr std::string_view kLength = "Content-Length: ";
      if (line.rfind(kLength, 0) == 0) length = std::stoul(line.substr(kLength.size()));
    }
    body_.clear();
    if (length) {
      Take(*length);
      return body_;
    }
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

// Numbers in its buckets.
std::size_t CountIn(const v1::QueryBucketsResponse& answer) {
  std::size_t values = 0;
  for (const auto& series : answer.series()) {
    values +=
        static_cast<std::size_t>(series.indexes_size() + series.mins_size() + series.maxs_size() +
                                 series.means_size() + series.lasts_size() + series.counts_size());
  }
  return values;
}

void DieUnlessMany(const v1::QueryBucketsResponse& answer) {
  const std::size_t values = CountIn(answer);
  DieUnless(values >= kBucketValues ? absl::OkStatus()
                                    : absl::InternalError(absl::StrCat(values, " values came")));
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

v1::QueryBucketsRequest TwoSeries() {
  v1::QueryBucketsRequest request;
  request.mutable_trial()->set_external_id(kTrial);
  for (const char* name : {"scope_0", "scope_1"}) {
    v1::SeriesSelector& selector = *request.add_selectors();
    selector.set_metric_group("timing");
    selector.set_name(name);
  }
  request.set_max_buckets(10'000);
  request.set_resolution(v1::RESOLUTION_RAW);
  return request;
}

using Stub = v1::QueryService::Stub;

void DieUnlessOk(const grpc::Status& status) {
  DieUnless(status.ok() ? absl::OkStatus() : absl::InternalError(status.error_message()));
}

// In turns, now one first and now the other. `after` each pair, which counts from 0.
template <typename Ours, typename Theirs, typename After>
Pairs InTurns(int pair_count, const Ours& by_http, const Theirs& by_grpc, const After& after) {
  Pairs pairs;
  constexpr int kWarming = 3;
  for (int i = 0; i < pair_count + kWarming; ++i) {
    const bool is_first = i % 2 == 0;
    double ours = is_first ? Milliseconds(by_http) : 0;
    const double theirs = Milliseconds(by_grpc);
    if (!is_first) ours = Milliseconds(by_http);
    if (i < kWarming) continue;
    pairs.ours.push_back(ours);
    pairs.theirs.push_back(theirs);
    after(i - kWarming);
  }
  return pairs;
}

void RunUnary(Stub& stub, Http& http, int pair_count) {
  const v1::QueryBucketsRequest request = TwoSeries();
  const std::string request_bytes = request.SerializeAsString();
  const auto by_grpc = [&] {
    grpc::ClientContext context;
    v1::QueryBucketsResponse answer;
    DieUnlessOk(stub.QueryBuckets(&context, request, &answer));
    DieUnlessMany(answer);
  };
  const auto by_http = [&] {
    v1::QueryBucketsResponse answer;
    answer.ParseFromString(http.Ask("QueryBuckets", "application/proto", request_bytes));
    DieUnlessMany(answer);
  };
  const Pairs pairs = InTurns(pair_count, by_http, by_grpc, [](int) {});
  std::fprintf(stderr, "http: 120,000 values of buckets: gRPC %.2f ms, Connect %.2f ms\n",
               Median(pairs.theirs), Median(pairs.ours));
  PrintRatio("http.unary", "the same answer of 120,000 values of buckets over gRPC",
             Promised("<= 1.15"), pairs);
}

void Run(Stub& stub, Http& http, int pair_count) {
  const v1::ReadSamplesRequest request = OneSeries();
  const std::string request_bytes = request.SerializeAsString();
  const std::string request_json = absl::StrCat(
      R"({"trial":{"externalId":")", kTrial,
      R"("},"selector":{"metricGroup":"timing","name":"scope_0"},"pageSamples":100000})");
  const auto by_grpc = [&] {
    grpc::ClientContext context;
    v1::ReadSamplesResponse response;
    std::size_t samples = 0;
    const auto reader = stub.ReadSamples(&context, request);
    while (reader->Read(&response)) samples += static_cast<std::size_t>(response.values_size());
    DieUnlessOk(reader->Finish());
    DieUnlessAll(samples);
  };
  const auto ask = [&](const char* type, const std::string& message) -> const std::string& {
    return http.Ask("ReadSamples", type, EnvelopeText(0, message));
  };
  const auto by_http = [&] {
    DieUnlessAll(CountIn(ask("application/connect+proto", request_bytes)));
  };
  std::vector<double> json_ms;
  const Pairs pairs = InTurns(pair_count, by_http, by_grpc, [&](int pair) {
    if (pair % 10 != 0) return;
    json_ms.push_back(Milliseconds([&] { ask("application/connect+json", request_json); }));
  });
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
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(64 << 20);
  const auto stub = v1::QueryService::NewStub(grpc::CreateCustomChannel(
      master.grpc_address(), grpc::InsecureChannelCredentials(), arguments));
  const auto http = std::make_unique<Http>(master.http_address());
  const int pair_count = is_quick ? 60 : 600;
  Run(*stub, *http, pair_count);
  RunUnary(*stub, *http, pair_count);
  return 0;
}

}  // namespace
}  // namespace stepwell::bench

int main(int argc, char** argv) {
  const stepwell::bench::AskedOptions asked("http_bench", {stepwell::bench::AskedOptions::kQuick},
                                            argc, argv);
  return stepwell::bench::Main(asked.Has("--quick"));
}
