// connect_stand: the HTTP port as the master has it, before services that do what their request's text
// says, so that clients see every end that a call can have. No database. Prints its address, and ends with
// its input.
//
//   name_contains of ListTrials, external_id of ReadSamples:
//     "end 5"        ends with code 5 and all kinds of details
//     "send 3"       ReadSamples sends three messages; ListTrials one of that many trials
//     "send 3 end 5" both
//     "trail"        ends with metadata: two values of a name, and bytes
//     "wait"         until the client or its deadline ends it
//     "waited"       ListTrials: how many of those have ended, as next_page_token
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "server/grpc_error.h"
#include "server/grpc_server.h"
#include "server/http/connect_gateway.h"
#include "server/http/http_server.h"
#include "server/http/rpc_channel.h"
#include "stepwell/v1/query.grpc.pb.h"

namespace stepwell {
namespace {

struct Wanted {
  int send = 0;
  int end = 0;
  bool wait = false;
  bool trail = false;
};

Wanted WantedBy(const std::string& text) {
  Wanted wanted;
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string next = i + 1 < words.size() ? words[i + 1] : "";
    if (words[i] == "send" && !absl::SimpleAtoi(next, &wanted.send)) wanted.send = 0;
    if (words[i] == "end" && !absl::SimpleAtoi(next, &wanted.end)) wanted.end = 0;
    wanted.wait = wanted.wait || words[i] == "wait";
    wanted.trail = wanted.trail || words[i] == "trail";
  }
  return wanted;
}

class Stand final : public v1::QueryService::Service {
 public:
  grpc::Status ListTrials(grpc::ServerContext* context, const v1::ListTrialsRequest* request,
                          v1::ListTrialsResponse* response) override {
    const Wanted wanted = WantedBy(request->name_contains());
    if (wanted.wait) return WaitFor(context);
    response->set_next_page_token(request->name_contains() == "waited"
                                      ? absl::StrCat(waited_.load())
                                      : request->name_contains());
    for (int i = 0; i < wanted.send; ++i) {
      auto& trial = *response->add_trials();
      trial.set_trial_id(9'007'199'254'740'993 + i);  // beyond what a double holds
      trial.set_external_id(absl::StrCat("größer-", i));
    }
    return EndOf(wanted, *context);
  }

  grpc::Status ReadSamples(grpc::ServerContext* context, const v1::ReadSamplesRequest* request,
                           grpc::ServerWriter<v1::ReadSamplesResponse>* writer) override {
    const Wanted wanted = WantedBy(request->trial().external_id());
    for (int i = 0; i < wanted.send; ++i) {
      v1::ReadSamplesResponse response;
      response.set_cursor(absl::StrCat(i));
      response.add_values(i + 0.5);
      response.add_timestamps_us(i);
      if (!writer->Write(response)) break;
    }
    if (wanted.wait) return WaitFor(context);
    return EndOf(wanted, *context);
  }

 private:
  static grpc::Status EndOf(const Wanted& wanted, grpc::ServerContext& context) {
    if (wanted.trail) {
      context.AddTrailingMetadata("seen", "once");
      context.AddTrailingMetadata("seen", "twice");
      context.AddTrailingMetadata("raw-bin", std::string("\0\xff\r\n", 4));
    }
    if (wanted.end == 0) return grpc::Status::OK;
    return GrpcError(absl::Status(static_cast<absl::StatusCode>(wanted.end),
                                  absl::StrCat("as asked: ", wanted.end, ", \"größer\"")),
                     {.reason = "AS_ASKED",
                      .retry_delay = absl::Milliseconds(1500),
                      .violations = {{"trial", "is what it is"}},
                      .metadata = {{"code", absl::StrCat(wanted.end)}}});
  }
  grpc::Status WaitFor(grpc::ServerContext* context) {
    const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(60);
    while (!context->IsCancelled() && !deadline.HasPassed()) {
      absl::SleepFor(absl::Milliseconds(5));
    }
    ++waited_;
    return grpc::Status(grpc::StatusCode::CANCELLED, "nobody waits any more");
  }

  std::atomic<int> waited_ = 0;
};

int Main() {
  Stand stand;
  GrpcServer grpc({});
  grpc.Register(&stand, v1::QueryService::service_full_name());
  RpcChannel rpc(2);
  // Clients on this machine want gzip here, to see it.
  ConnectGateway gateway({.serves_get = true, .packs_for_loopback = true}, rpc);
  HttpServer http({});
  gateway.Serve(*v1::ListTrialsRequest::descriptor()->file()->FindServiceByName("QueryService"),
                http.routes());
  absl::Status started = grpc.Bind();
  if (started.ok()) started = grpc.Start();
  if (started.ok()) rpc.Open(grpc.InProcessChannel());
  if (started.ok()) started = http.Start();
  if (!started.ok()) {
    std::cerr << started << "\n";
    return 1;
  }
  std::printf("http://127.0.0.1:%d\n", http.port());
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  grpc.Stop(SteadyTime::Now() + absl::Seconds(1));
  rpc.Stop();
  http.Stop();
  return 0;
}

}  // namespace
}  // namespace stepwell

int main() { return stepwell::Main(); }
