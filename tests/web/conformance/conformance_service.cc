#include "tests/web/conformance/conformance_service.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "base/steady_time.h"
#include "google/rpc/status.pb.h"
#include "server/http/url_text.h"

namespace stepwell {
namespace {

namespace pb = connectrpc::conformance::v1;
using RequestInfo = pb::ConformancePayload::RequestInfo;
using Headers = google::protobuf::RepeatedPtrField<pb::Header>;

void AddHeader(const std::string& name, const std::string& value, Headers* headers) {
  auto header = std::find_if(headers->begin(), headers->end(), [&](const pb::Header& each) {
    return absl::EqualsIgnoreCase(each.name(), name);
  });
  if (header == headers->end()) {
    headers->Add()->set_name(name);
    header = headers->end() - 1;
  }
  header->add_value(value);
}

RequestInfo InfoOf(const grpc::ServerContext& context, const HttpRequest& asked,
                   const google::protobuf::Message& request) {
  RequestInfo info;
  for (const auto& [name, value] : asked.headers) {
    AddHeader(name, value, info.mutable_request_headers());
  }
  const auto left = context.deadline() - std::chrono::system_clock::now();
  // Hours: nobody asked for one.
  if (left < std::chrono::hours(24)) {
    info.set_timeout_ms(std::chrono::duration_cast<std::chrono::milliseconds>(left).count());
  }
  info.add_requests()->PackFrom(request);
  if (asked.method != "GET") return info;
  const auto query = ParseUrlQuery(asked.query);
  auto& get = *info.mutable_connect_get_info();
  if (!query.ok()) return info;
  for (const auto& [name, value] : *query) AddHeader(name, value, get.mutable_query_params());
  return info;
}

// `add` takes a name and a value, as gRPC's methods of metadata do.
template <typename Add>
void SetMetadata(const Headers& headers, const Add& add) {
  for (const pb::Header& header : headers) {
    const std::string name = absl::AsciiStrToLower(header.name());
    for (const std::string& value : header.value()) {
      std::string bytes;
      const bool is_binary = absl::EndsWith(name, "-bin") && absl::Base64Unescape(value, &bytes);
      add(name, is_binary ? bytes : value);
    }
  }
}

template <typename Definition>
void SetMetadata(const Definition& wanted, grpc::ServerContext* context) {
  SetMetadata(wanted.response_headers(), [&](const std::string& name, const std::string& value) {
    context->AddInitialMetadata(name, value);
  });
  SetMetadata(wanted.response_trailers(), [&](const std::string& name, const std::string& value) {
    context->AddTrailingMetadata(name, value);
  });
}

void Wait(const grpc::ServerContext& context, std::uint32_t milliseconds) {
  const SteadyTime end = SteadyTime::Now() + absl::Milliseconds(milliseconds);
  while (!end.HasPassed() && !context.IsCancelled()) absl::SleepFor(absl::Milliseconds(5));
}

// `info`: what a call tells that has sent nothing; null where it has.
grpc::Status StatusOf(const pb::Error& error, const RequestInfo* info) {
  google::rpc::Status wire;
  wire.set_code(error.code());
  wire.set_message(error.message());
  *wire.mutable_details() = error.details();
  if (info != nullptr) wire.add_details()->PackFrom(*info);
  return {static_cast<grpc::StatusCode>(error.code()), error.message(), wire.SerializeAsString()};
}

template <typename Request, typename Response>
grpc::Status AnswerOne(grpc::ServerContext* context, const HttpRequest& asked,
                       const Request& request, Response* response) {
  const auto& wanted = request.response_definition();
  const RequestInfo info = InfoOf(*context, asked, request);
  SetMetadata(wanted, context);
  Wait(*context, wanted.response_delay_ms());
  if (wanted.has_error()) return StatusOf(wanted.error(), &info);
  auto& payload = *response->mutable_payload();
  payload.set_data(wanted.response_data());
  *payload.mutable_request_info() = info;
  return grpc::Status::OK;
}

}  // namespace

grpc::Status ConformanceService::Unary(grpc::ServerContext* context,
                                       const pb::UnaryRequest* request,
                                       pb::UnaryResponse* response) {
  return AnswerOne(context, asked_.Of(*context), *request, response);
}

grpc::Status ConformanceService::IdempotentUnary(grpc::ServerContext* context,
                                                 const pb::IdempotentUnaryRequest* request,
                                                 pb::IdempotentUnaryResponse* response) {
  return AnswerOne(context, asked_.Of(*context), *request, response);
}

grpc::Status ConformanceService::ServerStream(
    grpc::ServerContext* context, const pb::ServerStreamRequest* request,
    grpc::ServerWriter<pb::ServerStreamResponse>* writer) {
  const auto& wanted = request->response_definition();
  const RequestInfo info = InfoOf(*context, asked_.Of(*context), *request);
  SetMetadata(wanted, context);
  writer->SendInitialMetadata();
  for (int i = 0; i < wanted.response_data_size(); ++i) {
    pb::ServerStreamResponse response;
    response.mutable_payload()->set_data(wanted.response_data(i));
    if (i == 0) *response.mutable_payload()->mutable_request_info() = info;
    Wait(*context, wanted.response_delay_ms());
    if (!writer->Write(response)) break;
  }
  if (!wanted.has_error()) return grpc::Status::OK;
  return StatusOf(wanted.error(), wanted.response_data_size() == 0 ? &info : nullptr);
}

}  // namespace stepwell
