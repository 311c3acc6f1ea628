#include "server/error_details.h"

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/rate_refusal.h"
#include "server/text_check.h"

namespace stepwell {
namespace {

constexpr std::size_t kMessageBytesShown = 1024;

template <typename Detail>
void Pack(const Detail& detail, google::rpc::Status& into) {
  into.add_details()->PackFrom(detail);
}

}  // namespace

ErrorDetails DetailsOf(const absl::Status& status) {
  ErrorDetails details;
  if (const auto reason = status.GetPayload("stepwell/reason")) {
    details.reason = std::string(*reason);
  }
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    if (absl::ConsumePrefix(&url, "stepwell/metadata/")) {
      details.metadata[std::string(url)] = std::string(payload);
    }
  });
  details.retry_delay = RetryDelayOf(status);
  if (status.code() == absl::StatusCode::kUnavailable) details.retry_delay = absl::Seconds(1);
  return details;
}

std::string ToldMessage(const absl::Status& status) {
  return Shortened(status.message(), kMessageBytesShown);
}

std::string WireDetails(const absl::Status& status, const ErrorDetails& details) {
  google::rpc::Status wire;
  wire.set_code(static_cast<int>(status.code()));
  wire.set_message(ToldMessage(status));
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
  return wire.SerializeAsString();
}

}  // namespace stepwell
