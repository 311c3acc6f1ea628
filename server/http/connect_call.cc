#include "server/http/connect_call.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/http/connect_envelope.h"
#include "server/http/connect_error.h"
#include "server/http/gzip.h"
#include "server/http/message_json.h"
#include "server/text_check.h"

namespace stepwell {
namespace {

// What gzip saves below it is less than a packet.
constexpr std::size_t kPackedBytesMin = 1024;
constexpr std::size_t kMessageBytesShown = 1024;

RpcStatus RpcStatusOf(const absl::Status& status) {
  return {status.code(), Shortened(status.message(), kMessageBytesShown)};
}

HttpResponse StreamHead(ConnectForm form) { return {200, form.content_type(), ""}; }

}  // namespace

ConnectCall::ConnectCall(const google::protobuf::MethodDescriptor& method, ConnectRequest request,
                         std::shared_ptr<HttpExchange> exchange, std::size_t request_bytes_max)
    : method_(method),
      request_(std::move(request)),
      exchange_(std::move(exchange)),
      request_bytes_max_(request_bytes_max) {}

absl::StatusOr<std::string> ConnectCall::MakeRequest() {
  std::string message = std::move(request_.message);
  if (request_.is_gzipped) {
    STEPWELL_ASSIGN_OR_RETURN(message, Gunzip(message, request_bytes_max_));
  }
  // Of one that is in no envelope the port takes a few bytes more.
  if (message.size() > request_bytes_max_) return TooLargeRequest(request_bytes_max_);
  if (!request_.form.is_json) {
    STEPWELL_RETURN_IF_ERROR(CheckBytes(*method_.input_type(), message));
    return message;
  }
  absl::StatusOr<std::string> bytes = BytesOfJson(*method_.input_type(), message);
  if (bytes.ok()) return bytes;
  return absl::Status(bytes.status().code(),
                      Shortened(bytes.status().message(), kMessageBytesShown));
}

bool ConnectCall::HasRoom(std::size_t bytes) {
  if (exchange_->HasRoom(bytes)) return true;
  failed_ = {absl::StatusCode::kResourceExhausted, "too many answers wait for their clients"};
  return false;
}

bool ConnectCall::Encode(std::string& bytes) {
  if (!HasRoom(bytes.size())) return false;
  if (!request_.form.is_json) return true;
  absl::StatusOr<std::string> json = JsonOfBytes(*method_.output_type(), bytes);
  if (!json.ok()) {
    failed_ = RpcStatusOf(json.status());
    return false;
  }
  bytes = *std::move(json);
  return HasRoom(bytes.size());
}

void ConnectCall::OnHeaders(RpcMetadata headers) { headers_ = LeadingHeaders(headers); }

void ConnectCall::OnMessage(const std::shared_ptr<RpcCall>& call, const SharedBytes& bytes) {
  if (!request_.form.is_stream) {
    answer_ = bytes.Text();
    begun_ = true;
    return call->Next();
  }
  SharedBytes part;
  if (request_.form.is_json) {
    std::string text = bytes.Text();
    if (!Encode(text)) return call->Cancel();
    part = SharedBytes(std::move(text));
  } else {
    if (!HasRoom(bytes.size())) return call->Cancel();
    part = bytes;
  }
  part.Prepend(EnvelopeHead(0, part.size()));
  if (!std::exchange(begun_, true)) BeginStream();
  exchange_->Write(std::move(part), [call] { call->Next(); });
}

void ConnectCall::OnEnd(const RpcStatus& status) {
  if (!request_.form.is_stream) {
    AnswerUnary(status);
  } else {
    if (!begun_) BeginStream();
    exchange_->End(
        EnvelopeText(kEnvelopeEndOfStream, ConnectEndOfStream(failed_.ok() ? status : failed_)));
  }
  exchange_.reset();
}

void ConnectCall::AnswerUnary(const RpcStatus& status) {
  if (status.ok() && !begun_) failed_ = {absl::StatusCode::kInternal, "the service said nothing"};
  if (!status.ok()) failed_ = status;
  if (!failed_.ok() || !Encode(answer_)) return Answer(ConnectErrorAnswer(failed_));
  HttpResponse response{200, request_.form.content_type(), "", TrailerHeaders(status)};
  if (request_.accepts_gzip && answer_.size() > kPackedBytesMin) {
    answer_ = Gzip(answer_);
    response.headers.emplace_back("Content-Encoding", "gzip");
    response.headers.emplace_back("Vary", "Accept-Encoding");
  }
  response.body = std::move(answer_);
  Answer(std::move(response));
}

void ConnectCall::Answer(HttpResponse response) {
  std::move(headers_.begin(), headers_.end(), std::back_inserter(response.headers));
  exchange_->Answer(std::move(response));
}

void ConnectCall::BeginStream() {
  HttpResponse head = StreamHead(request_.form);
  head.headers = std::move(headers_);
  exchange_->Begin(std::move(head));
}

absl::Status TooLargeRequest(std::size_t bytes_max) {
  return absl::ResourceExhaustedError(
      absl::StrCat("the request is too large, allowed are ", bytes_max, " bytes"));
}

HttpResponse ConnectFailure(ConnectForm form, const RpcStatus& status) {
  if (!form.is_stream) return ConnectErrorAnswer(status);
  HttpResponse response = StreamHead(form);
  response.body = EnvelopeText(kEnvelopeEndOfStream, ConnectEndOfStream(status));
  return response;
}

}  // namespace stepwell
