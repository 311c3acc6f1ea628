// The Connect gateway over raw sockets, before a service of the test's: what no client of others sends, and
// what a client that is slow or gone leaves behind.
#include "server/http/connect_gateway.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/grpc_server.h"
#include "server/http/connect_envelope.h"
#include "server/http/gzip.h"
#include "server/http/http_server.h"
#include "server/http/rpc_channel.h"
#include "stepwell/v1/query.grpc.pb.h"
#include "tests/unit/server/raw_http.h"

namespace stepwell {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::size_t kLargeBytes = 1 << 20;

bool Eventually(const std::function<bool()>& holds) {
  const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(30);
  while (!holds()) {
    if (deadline.HasPassed()) return false;
    absl::SleepFor(absl::Milliseconds(2));
  }
  return true;
}

class Service final : public v1::QueryService::Service {
 public:
  grpc::Status ListTrials(grpc::ServerContext* context, const v1::ListTrialsRequest* request,
                          v1::ListTrialsResponse* response) override {
    BeginWith(request->name_contains(), context);
    if (request->name_contains() == "begin, fail") return {grpc::StatusCode::NOT_FOUND, "none"};
    response->set_next_page_token(request->name_contains());
    // A MiB of it for each line of the page.
    if (request->page_size() > 0) {
      response->set_next_page_token(
          std::string(static_cast<std::size_t>(request->page_size()) << 20, 'x'));
    }
    return grpc::Status::OK;
  }
  // Until nobody waits.
  grpc::Status GetTrial(grpc::ServerContext* context, const v1::GetTrialRequest*,
                        v1::GetTrialResponse*) override {
    ++begun;
    const bool over = Eventually([&] { return context->IsCancelled(); });
    ++ended;
    return {over ? grpc::StatusCode::CANCELLED : grpc::StatusCode::INTERNAL, "over"};
  }
  // Large messages for as long as they are taken; none, or one, of a trial.
  grpc::Status ReadSamples(grpc::ServerContext* context, const v1::ReadSamplesRequest* request,
                           grpc::ServerWriter<v1::ReadSamplesResponse>* writer) override {
    if (const std::string& trial = request->trial().external_id(); !trial.empty()) {
      BeginWith(trial, context);
      if (trial == "begin, say") writer->Write({});
      return grpc::Status::OK;
    }
    ++begun;
    v1::ReadSamplesResponse response;
    response.set_cursor(std::string(kLargeBytes, 'x'));
    while (writer->Write(response)) ++written;
    ++ended;
    return grpc::Status::OK;
  }

  static void BeginWith(const std::string& asked, grpc::ServerContext* context) {
    if (!absl::StartsWith(asked, "begin")) return;
    context->AddInitialMetadata("seen", "once");
    context->AddInitialMetadata("seen", "twice");
    context->AddInitialMetadata("raw-bin", std::string("\0\xff\r\n", 4));
    context->AddTrailingMetadata("last", "word");
  }

  std::atomic<int> begun = 0;
  std::atomic<int> ended = 0;
  std::atomic<int> written = 0;
};

class ConnectGatewayTest : public ::testing::Test {
 protected:
  void Start(HttpServer::Options options = {}, bool open = true) {
    grpc_.Register(&service_, v1::QueryService::service_full_name());
    ASSERT_TRUE(grpc_.Bind().ok());
    ASSERT_TRUE(grpc_.Start().ok());
    if (open) rpc_.Open(grpc_.InProcessChannel());
    http_ = std::make_unique<HttpServer>(options);
    gateway_.Serve(*v1::ListTrialsRequest::descriptor()->file()->FindServiceByName("QueryService"),
                   http_->routes());
    ASSERT_TRUE(http_->Start().ok());
  }
  void TearDown() override {
    grpc_.Stop(SteadyTime::Now());
    rpc_.Stop();
    http_->Stop();
  }
  static std::string Post(const std::string& method, const std::string& headers,
                          const std::string& body) {
    return absl::StrCat("POST /stepwell.v1.QueryService/", method,
                        " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: ",
                        body.size(), "\r\n", headers, "\r\n", body);
  }
  // Of the one call that says it.
  static std::string List(const std::string& headers) {
    return Post("ListTrials", absl::StrCat("Content-Type: application/json\r\n", headers), "{}");
  }
  std::string Exchange(const std::string& request) {
    RawHttp client(http_->port());
    EXPECT_TRUE(client.Send(request));
    return client.ReadAll();
  }

  Service service_;
  GrpcServer grpc_{{}};
  RpcChannel rpc_{2};
  ConnectGateway gateway_{{}, rpc_};
  std::unique_ptr<HttpServer> http_;
};

std::string Repeated(std::string_view text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all.append(text);
  return all;
}

// JSON of that many bytes.
std::string Filled(std::string json, std::size_t bytes) {
  json.resize(bytes, ' ');
  return json;
}

constexpr char kJson[] = "Content-Type: application/json\r\n";
constexpr char kJsonStream[] = "Content-Type: application/connect+json\r\n";

// Also where nobody is asked for a token: gRPC ends the process where metadata has other bytes than it allows.
TEST_F(ConnectGatewayTest, WhateverIsShownAsATokenEndsNoMaster) {
  Start();
  for (const std::string& shown :
       {std::string("Inside_"), std::string("Inside_\x80"), std::string("Inside_\tx"),
        std::string("Inside_") + std::string(8, '\xff'), std::string("Bearer \x80"),
        std::string("Bearer ") + std::string(4000, 'x'), std::string("\x80\xff"),
        std::string("Basic \xff=")}) {
    SCOPED_TRACE(absl::CHexEscape(shown.substr(0, 20)));
    EXPECT_THAT(Exchange(List(absl::StrCat("Authorization: ", shown, "\r\n"))),
                StartsWith("HTTP/1.1 200"));
  }
  const auto refused = rpc_.Start("/stepwell.v1.QueryService/ListTrials",
                                  {.authorization = "Inside_\x80", .peer = ""},
                                  SteadyTime::Now() + absl::Seconds(10), nullptr);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ConnectGatewayTest, EachRequestGetsItsStatus) {
  Start();
  struct Row {
    const char* name;
    std::string request;
    const char* status;
    std::string text;
  };
  const std::string gzip = absl::StrCat(kJson, "Content-Encoding: gzip\r\n");
  for (const Row& row : std::vector<Row>{
           {"answered", Post("ListTrials", kJson, "{\"nameContains\":\"x\"}"), "200",
            "\r\n\r\n{\"nextPageToken\":\"x\"}"},
           {"no body is an empty message", Post("ListTrials", kJson, ""), "200", "\r\n\r\n{}"},
           {"not JSON", Post("ListTrials", kJson, "{"), "400", "\"code\":\"invalid_argument\""},
           {"no such field", Post("ListTrials", kJson, "{\"nam\":1}"), "400", "nam"},
           {"nested without end",
            Post("ListTrials", kJson, absl::StrCat("{\"state\":", std::string(50'000, '['))), "400",
            "\"code\":\"invalid_argument\""},
           {"not the message",
            Post("ListTrials", "Content-Type: application/proto\r\n", "\xff\xff\xff"), "400",
            "\"message\":\"the body is no ListTrialsRequest\""},
           {"gzip", Post("ListTrials", gzip, Gzip("{\"nameContains\":\"y\"}")), "200",
            "{\"nextPageToken\":\"y\"}"},
           {"a bomb", Post("ListTrials", gzip, Gzip(std::string(5 << 20, ' '))), "429",
            "\"code\":\"resource_exhausted\""},
           {"another packing",
            Post("ListTrials", absl::StrCat(kJson, "Content-Encoding: br\r\n"), "x"), "501",
            "\"code\":\"unimplemented\""},
           {"a form", Post("ListTrials", "Content-Type: text/plain\r\n", "{}"), "415",
            "Accept-Post: application/json, application/proto"},
           {"a stream of a unary method", Post("ListTrials", kJsonStream, ""), "415", ""},
           {"in no form of a call", Post("ListTrials", "Content-Type: application/foo\r\n", ""),
            "415",
            "\r\n\r\n{\"code\":\"unknown\",\"message\":\"allowed here: application/json, "
            "application/proto\"}\n"},
           {"no service has it", Post("Nothing", kJson, "{}"), "404",
            "\r\n\r\n{\"code\":\"unimplemented\",\"message\":\"no such path\"}\n"},
           {"a call that is deleted",
            "DELETE /stepwell.v1.QueryService/ListTrials HTTP/1.1\r\nHost: localhost\r\n"
            "Connection: close\r\n\r\n",
            "405", "\r\n\r\n{\"code\":\"unknown\",\"message\":\"allowed here: POST\"}\n"},
           {"asked of a GET",
            "GET /stepwell.v1.QueryService/ListTrials?encoding=json&message={} HTTP/1.1\r\n"
            "Host: localhost\r\nConnection: close\r\n\r\n",
            "405", "Allow: POST"},
           {"by another's name",
            "POST /stepwell.v1.QueryService/ListTrials HTTP/1.1\r\nHost: evil.example\r\n"
            "Connection: close\r\nContent-Length: 0\r\n\r\n",
            "403", "\"code\":\"permission_denied\""},
           {"a stream for a client of 1996",
            "POST /stepwell.v1.QueryService/ReadSamples HTTP/1.0\r\nHost: localhost\r\n"
            "Content-Type: application/connect+json\r\n\r\n",
            "505", ""},
           {"a stream without an envelope", Post("ReadSamples", kJsonStream, "{}"), "200",
            "{\"error\":{\"code\":\"invalid_argument\""},
           {"a stream that asks twice",
            Post("ReadSamples", kJsonStream, EnvelopeText(0, "{}") + EnvelopeText(0, "{}")), "200",
            "{\"error\":{\"code\":\"unimplemented\""},
           {"a request of two bytes each for a million messages",
            Post("QueryBuckets", "Content-Type: application/proto\r\n",
                 Repeated(std::string_view("\x12\0", 2), 1 << 20)),
            "429",
            "\"message\":\"the request has too many parts (messages, labels, texts): 16 MiB are "},
           {"the same in JSON",
            Post("QueryBuckets", kJson,
                 absl::StrCat("{\"selectors\":[", Repeated("{},", 1 << 20), "{}]}")),
            "429", "\"message\":\"the request has more than 65536 elements\""},
           {"the same behind a text in single quotes",
            Post("QueryBuckets", kJson,
                 absl::StrCat("{\"trial\":{\"externalId\":'\"'},\"selectors\":[",
                              Repeated("{},", 1 << 20), "{}]}")),
            "429", "\"message\":\"the request has more than 65536 elements\""},
           {"a call of all that is allowed", Post("ListTrials", kJson, Filled("{}", 4 << 20)),
            "200", "\r\n\r\n{}"},
           {"one of a byte more", Post("ListTrials", kJson, Filled("{}", (4 << 20) + 1)), "429",
            "allowed are 4194304 bytes\"}"},
           {"a stream whose request is all that is allowed",
            Post("ReadSamples", kJsonStream,
                 EnvelopeText(0, Filled("{\"trial\":{\"externalId\":\"x\"}}", 4 << 20))),
            "200", EnvelopeText(2, "{}")},
           {"one whose request is a byte more",
            Post("ReadSamples", kJsonStream, EnvelopeText(0, Filled("{}", (4 << 20) + 1))), "200",
            "{\"error\":{\"code\":\"resource_exhausted\""},
           {"a call that is too large", Post("ListTrials", kJson, std::string(5 << 20, ' ')), "429",
            "\r\n\r\n{\"code\":\"resource_exhausted\",\"message\":\"the request is too large, "
            "allowed are 4194304 bytes\"}"},
           {"a stream whose request is too large",
            Post("ReadSamples", kJsonStream, EnvelopeText(0, std::string(5 << 20, ' '))), "200",
            "{\"error\":{\"code\":\"resource_exhausted\""},
           {"one in chunks",
            absl::StrCat(
                "POST /stepwell.v1.QueryService/ListTrials HTTP/1.1\r\nHost: localhost\r\n", kJson,
                "Transfer-Encoding: chunked\r\n\r\n500000\r\n", std::string(5 << 20, ' '),
                "\r\n0\r\n\r\n"),
            "429", "\"code\":\"resource_exhausted\""},
           {"a form that is too large",
            Post("ListTrials", "Content-Type: text/plain\r\n", std::string(5 << 20, ' ')), "415",
            "Accept-Post: application/json, application/proto"},
           {"one that is too large by another's name",
            absl::StrCat(
                "POST /stepwell.v1.QueryService/ListTrials HTTP/1.1\r\nHost: evil.example\r\n",
                kJson, "Content-Length: 5242880\r\n\r\n"),
            "413", "{\"error\":\"the body is too large\"}"},
           {"too late already",
            Post("GetTrial", absl::StrCat(kJson, "Connect-Timeout-Ms: 0\r\n"), "{}"), "504",
            "\"code\":\"deadline_exceeded\""},
       }) {
    SCOPED_TRACE(row.name);
    const std::string answer = Exchange(row.request);
    EXPECT_THAT(answer, StartsWith(absl::StrCat("HTTP/1.1 ", row.status, " ")));
    EXPECT_THAT(answer, HasSubstr(row.text));
    EXPECT_THAT(answer, HasSubstr("X-Content-Type-Options: nosniff\r\n"));
  }
}

TEST_F(ConnectGatewayTest, MetadataThatBeginsAnAnswerComesAsItsHeaders) {
  Start();
  const auto stream = [](const std::string& trial) {
    return Post("ReadSamples", kJsonStream,
                EnvelopeText(0, absl::StrCat("{\"trial\":{\"externalId\":\"", trial, "\"}}")));
  };
  struct Row {
    const char* name;
    std::string request;
    const char* status;
    std::string text;
  };
  const std::string unary = "\r\nTrailer-last: word\r\n";
  for (const Row& row : std::vector<Row>{
           {"unary", Post("ListTrials", kJson, "{\"nameContains\":\"begin\"}"), "200", unary},
           {"one that fails", Post("ListTrials", kJson, "{\"nameContains\":\"begin, fail\"}"),
            "404", unary},
           {"a stream", stream("begin, say"), "200",
            EnvelopeText(0, "{}") + "\r\n23\r\n" +
                EnvelopeText(2, "{\"metadata\":{\"last\":[\"word\"]}}")},
           {"a stream of no message", stream("begin"), "200",
            "\r\n\r\n23\r\n" + EnvelopeText(2, "{\"metadata\":{\"last\":[\"word\"]}}")},
       }) {
    SCOPED_TRACE(row.name);
    const std::string answer = Exchange(row.request);
    EXPECT_THAT(answer, StartsWith(absl::StrCat("HTTP/1.1 ", row.status, " ")));
    EXPECT_THAT(answer, HasSubstr("\r\nseen: once, twice\r\n"));
    EXPECT_THAT(answer, HasSubstr("\r\nraw-bin: AP8NCg\r\n"));
    EXPECT_THAT(answer, HasSubstr(row.text));
    EXPECT_THAT(answer, Not(HasSubstr("grpc-")));
  }
}

TEST_F(ConnectGatewayTest, CallsBeforeTheServicesAreThereAreSentAway) {
  Start({}, /*open=*/false);
  const std::string answer = Exchange(Post("ListTrials", kJson, "{}"));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(answer, HasSubstr("\"message\":\"this master is starting\""));
  rpc_.Open(grpc_.InProcessChannel());
  EXPECT_THAT(Exchange(Post("ListTrials", kJson, "{}")), StartsWith("HTTP/1.1 200"));
}

TEST_F(ConnectGatewayTest, ASlowReaderHoldsTheServiceBackAndIsSentAway) {
  HttpServer::Options options;
  options.stall_timeout = absl::Milliseconds(150);
  Start(options);
  RawHttp client(http_->port());
  ASSERT_TRUE(client.Send(
      Post("ReadSamples", "Content-Type: application/connect+proto\r\n", EnvelopeText(0, ""))));
  EXPECT_THAT(client.ReadBytes(12), StartsWith("HTTP/1.1 200"));
  // What lies in the sockets' buffers, some MiB, and one message here and there.
  ASSERT_TRUE(Eventually([&] { return service_.ended == 1; })) << "nobody noticed that it stalls";
  EXPECT_LT(service_.written, 48);
}

TEST_F(ConnectGatewayTest, AnswersThatWaitForTheirClientsHaveABoundInAll) {
  HttpServer::Options options;
  options.held_bytes_max = (32 << 20) + (512 << 10);
  Start(options);
  const auto ask = [](int mebibytes) {
    v1::ListTrialsRequest request;
    request.set_page_size(mebibytes);
    return Post("ListTrials", "Content-Type: application/proto\r\n", request.SerializeAsString());
  };
  // More than the sockets' buffers hold.
  auto slow = std::make_unique<RawHttp>(http_->port());
  ASSERT_TRUE(slow->Send(ask(32)));
  EXPECT_THAT(slow->ReadBytes(12), StartsWith("HTTP/1.1 200"));

  const std::string refused = Exchange(ask(1));
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 429"));
  EXPECT_THAT(refused, HasSubstr("\"code\":\"resource_exhausted\""));
  const std::string stream = Exchange(Post("ReadSamples", kJsonStream, EnvelopeText(0, "{}")));
  EXPECT_THAT(stream, HasSubstr("{\"error\":{\"code\":\"resource_exhausted\""));
  EXPECT_TRUE(Eventually([&] { return service_.ended == 1; }));
  EXPECT_THAT(Exchange(Post("ListTrials", kJson, "{}")), StartsWith("HTTP/1.1 200"))
      << "small ones go on";

  slow.reset();
  EXPECT_TRUE(Eventually([&] { return absl::StartsWith(Exchange(ask(1)), "HTTP/1.1 200"); }));
  // Nothing is left of those that were taken.
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Exchange(ask(32)).substr(0, 12), StartsWith("HTTP/1.1 200")) << i;
  }
  EXPECT_THAT(Exchange(ask(40)).substr(0, 12), StartsWith("HTTP/1.1 200")) << "longer than all";
}

TEST_F(ConnectGatewayTest, AClientThatGoesEndsItsCall) {
  Start();
  {
    const RawHttp client(http_->port());
    ASSERT_TRUE(client.Send(Post("GetTrial", kJson, "{}")));
    ASSERT_TRUE(Eventually([&] { return service_.begun == 1; }));
  }
  EXPECT_TRUE(Eventually([&] { return service_.ended == 1; }));
}

// The last that holds a connection is then often the call, on its own thread: it aborts where that ends it.
TEST_F(ConnectGatewayTest, ManyClientsThatGoDuringTheirCallsLeaveTheirPlaces) {
  HttpServer::Options options;
  options.connections_max = 32;  // of 400
  Start(options);
  constexpr int kRounds = 100;
  for (int round = 1; round <= kRounds; ++round) {
    std::deque<RawHttp> clients;
    for (int i = 0; i < 4; ++i) {
      const RawHttp& client = clients.emplace_back(http_->port());
      ASSERT_TRUE(client.Send(Post(i % 2 == 0 ? "GetTrial" : "ListTrials", kJson, "{}")));
    }
    ASSERT_TRUE(Eventually([&] { return service_.begun == 2 * round; })) << round;
    clients.clear();
    ASSERT_TRUE(Eventually([&] { return service_.ended == 2 * round; })) << round;
  }
  EXPECT_TRUE(Eventually(
      [&] { return absl::StartsWith(Exchange(Post("ListTrials", kJson, "{}")), "HTTP/1.1 200"); }));
}

TEST_F(ConnectGatewayTest, AStopEndsCallsThatAreUnderWay) {
  Start();
  RawHttp waiting(http_->port());
  ASSERT_TRUE(waiting.Send(Post("GetTrial", kJson, "{}")));
  RawHttp slow(http_->port());
  ASSERT_TRUE(slow.Send(
      Post("ReadSamples", "Content-Type: application/connect+proto\r\n", EnvelopeText(0, ""))));
  ASSERT_TRUE(Eventually([&] { return service_.begun == 2 && service_.written > 0; }));
  rpc_.StopTaking();
  EXPECT_THAT(Exchange(Post("ListTrials", kJson, "{}")), HasSubstr("this master is stopping"));
  EXPECT_EQ(service_.ended, 0) << "those under way go on";
  rpc_.Stop();
  EXPECT_TRUE(Eventually([&] { return service_.ended == 2; }));
  EXPECT_THAT(waiting.ReadAll(),
              HasSubstr("{\"code\":\"unavailable\",\"message\":\"this master is stopping\"}"));
  EXPECT_THAT(Exchange(Post("ListTrials", kJson, "{}")), HasSubstr("this master is stopping"));
}

}  // namespace
}  // namespace stepwell
