#include "server/http/connect_error.h"

#include <google/protobuf/util/json_util.h>

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "google/rpc/status.pb.h"
#include "nlohmann/json.hpp"
#include "proto/retry_delay.h"
#include "server/rate_refusal.h"

namespace stepwell {
namespace {

struct Row {
  absl::StatusCode code;
  const char* name;
  int http_status;
};

constexpr Row kRows[] = {
    {absl::StatusCode::kCancelled, "canceled", 499},
    {absl::StatusCode::kUnknown, "unknown", 500},
    {absl::StatusCode::kInvalidArgument, "invalid_argument", 400},
    {absl::StatusCode::kDeadlineExceeded, "deadline_exceeded", 504},
    {absl::StatusCode::kNotFound, "not_found", 404},
    {absl::StatusCode::kAlreadyExists, "already_exists", 409},
    {absl::StatusCode::kPermissionDenied, "permission_denied", 403},
    {absl::StatusCode::kResourceExhausted, "resource_exhausted", 429},
    {absl::StatusCode::kFailedPrecondition, "failed_precondition", 400},
    {absl::StatusCode::kAborted, "aborted", 409},
    {absl::StatusCode::kOutOfRange, "out_of_range", 400},
    {absl::StatusCode::kUnimplemented, "unimplemented", 501},
    {absl::StatusCode::kInternal, "internal", 500},
    {absl::StatusCode::kUnavailable, "unavailable", 503},
    {absl::StatusCode::kDataLoss, "data_loss", 500},
    {absl::StatusCode::kUnauthenticated, "unauthenticated", 401},
};

const Row& RowOf(absl::StatusCode code) {
  for (const Row& row : kRows) {
    if (row.code == code) return row;
  }
  return kRows[1];
}

std::string Text(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// What the detail says, where its type is one that we were built with.
nlohmann::json DebugOf(const google::protobuf::Any& any, const std::string& type) {
  const auto* descriptor =
      google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(type);
  if (descriptor == nullptr) return nullptr;
  const std::unique_ptr<google::protobuf::Message> message(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(descriptor)->New());
  std::string text;
  if (!message->ParseFromString(any.value()) ||
      !google::protobuf::util::MessageToJsonString(*message, &text).ok()) {
    return nullptr;
  }
  return nlohmann::json::parse(text, nullptr, false);
}

// As the protocol has bytes: without padding.
std::string Base64Of(const std::string& bytes) {
  std::string text = absl::Base64Escape(bytes);
  text.erase(text.find_last_not_of('=') + 1);
  return text;
}

// By name, each with its values in their order.
std::map<std::string, std::vector<std::string>> ValuesOf(const RpcMetadata& metadata) {
  std::map<std::string, std::vector<std::string>> values;
  for (const auto& [name, value] : metadata) {
    values[name].push_back(absl::EndsWith(name, "-bin") ? Base64Of(value) : value);
  }
  return values;
}

HttpHeaders HeadersOf(absl::string_view prefix, const RpcMetadata& metadata) {
  HttpHeaders headers;
  for (const auto& [name, values] : ValuesOf(metadata)) {
    headers.emplace_back(absl::StrCat(prefix, name), absl::StrJoin(values, ", "));
  }
  return headers;
}

nlohmann::json DetailJson(const google::protobuf::Any& any) {
  const std::string& url = any.type_url();
  const std::string type = url.substr(url.rfind('/') + 1);
  nlohmann::json detail{{"type", type}, {"value", Base64Of(any.value())}};
  if (nlohmann::json debug = DebugOf(any, type); debug.is_object()) {
    detail["debug"] = std::move(debug);
  }
  return detail;
}

}  // namespace

std::string_view ConnectCodeName(absl::StatusCode code) { return RowOf(code).name; }

int ConnectHttpStatus(absl::StatusCode code) { return RowOf(code).http_status; }

nlohmann::json ConnectErrorJson(const RpcStatus& status) {
  nlohmann::json error{{"code", ConnectCodeName(status.code)}, {"message", status.message}};
  google::rpc::Status wire;
  if (wire.ParseFromString(status.details) && wire.details_size() > 0) {
    for (const auto& any : wire.details()) error["details"].push_back(DetailJson(any));
  }
  return error;
}

HttpHeaders RetryHeaders(const RpcStatus& status) {
  const std::optional<absl::Duration> delay = RetryDelayIn(status.details);
  if (!delay) return {};
  return {{"Retry-After", RetryAfterText(*delay)}};
}

HttpHeaders LeadingHeaders(const RpcMetadata& metadata) { return HeadersOf("", metadata); }

HttpHeaders TrailerHeaders(const RpcStatus& status) {
  return HeadersOf("Trailer-", status.trailers);
}

HttpResponse ConnectErrorAnswer(const RpcStatus& status) {
  HttpHeaders headers = RetryHeaders(status);
  for (auto& trailer : TrailerHeaders(status)) headers.push_back(std::move(trailer));
  return {ConnectHttpStatus(status.code), "application/json", Text(ConnectErrorJson(status)) + "\n",
          std::move(headers)};
}

HttpResponse PlainErrorAnswer(const RpcStatus& status) {
  int http_status = 503;
  if (status.code == absl::StatusCode::kNotFound) http_status = 404;
  if (status.code == absl::StatusCode::kResourceExhausted) http_status = 429;
  return {http_status, "application/json", Text({{"error", status.message}}) + "\n",
          RetryHeaders(status)};
}

std::string ConnectEndOfStream(const RpcStatus& status) {
  nlohmann::json end = nlohmann::json::object();
  if (!status.ok()) end["error"] = ConnectErrorJson(status);
  for (const auto& [name, values] : ValuesOf(status.trailers)) end["metadata"][name] = values;
  return Text(end);
}

}  // namespace stepwell
