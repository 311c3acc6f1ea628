#include "server/grpc_error.h"

#include "absl/strings/strip.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/text_check.h"
#include "server/told_error.h"

namespace stepwell {
namespace {

constexpr std::size_t kMessageBytesShown = 1024;

template <typename Detail>
void Pack(const Detail& detail, google::rpc::Status& into) {
  into.add_details()->PackFrom(detail);
}

}  // namespace

grpc::Status GrpcError(const absl::Status& status, const ErrorDetails& details) {
  if (status.ok()) return grpc::Status::OK;
  // Trailing metadata is bounded, and must be UTF-8.
  const std::string message = Shortened(status.message(), kMessageBytesShown);
  google::rpc::Status wire;
  wire.set_code(static_cast<int>(status.code()));
  wire.set_message(message);
  google::rpc::ErrorInfo info;
  info.set_reason(details.reason.empty() ? absl::StatusCodeToString(status.code())
                                         : details.reason);
  info.set_domain("stepwell");
  for (const auto& [name, value] : details.metadata) (*info.mutable_metadata())[name] = value;
  Pack(info, wire);
  if (details.retry_delay) {
    google::rpc::RetryInfo retry;
    const absl::Duration whole = absl::Floor(*details.retry_delay, absl::Seconds(1));
    retry.mutable_retry_delay()->set_seconds(absl::ToInt64Seconds(whole));
    retry.mutable_retry_delay()->set_nanos(
        static_cast<std::int32_t>(absl::ToInt64Nanoseconds(*details.retry_delay - whole)));
    Pack(retry, wire);
  }
  if (!details.violations.empty()) {
    google::rpc::BadRequest bad;
    for (const FieldViolation& violation : details.violations) {
      auto& field = *bad.add_field_violations();
      field.set_field(violation.field);
      field.set_description(Shortened(violation.description, kMessageBytesShown));
    }
    Pack(bad, wire);
  }
  return {static_cast<grpc::StatusCode>(status.code()), message, wire.SerializeAsString()};
}

grpc::Status GrpcError(const absl::Status& status) {
  ErrorDetails details;
  if (const auto reason = status.GetPayload("stepwell/reason")) {
    details.reason = std::string(*reason);
  }
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    if (absl::ConsumePrefix(&url, "stepwell/metadata/")) {
      details.metadata[std::string(url)] = std::string(payload);
    }
  });
  if (status.code() == absl::StatusCode::kUnavailable) details.retry_delay = absl::Seconds(1);
  const ToldError told = TellClient(status);
  if (!told.request_id.empty()) details.metadata["request_id"] = told.request_id;
  return GrpcError(absl::Status(status.code(), told.message), details);
}

grpc::Status GrpcError(const Complaint& complaint) {
  ErrorDetails details{.reason = complaint.reason, .retry_delay = {}, .violations = {}};
  if (complaint.code == absl::StatusCode::kInvalidArgument) {
    // Messages begin with the field's path.
    details.violations.push_back(
        {complaint.message.substr(0, complaint.message.find_first_of(" :")), complaint.message});
  }
  if (complaint.code == absl::StatusCode::kUnavailable) details.retry_delay = absl::Seconds(1);
  return GrpcError(absl::Status(complaint.code, complaint.message), details);
}

}  // namespace stepwell
