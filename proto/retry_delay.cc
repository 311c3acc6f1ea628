#include "proto/retry_delay.h"

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace stepwell {

std::optional<absl::Duration> RetryDelayIn(const std::string& details_untrusted) {
  google::rpc::Status wire;
  google::rpc::RetryInfo retry;
  if (!wire.ParseFromString(details_untrusted)) return std::nullopt;
  for (const auto& detail : wire.details()) {
    if (!detail.UnpackTo(&retry)) continue;
    return absl::Seconds(retry.retry_delay().seconds()) +
           absl::Nanoseconds(retry.retry_delay().nanos());
  }
  return std::nullopt;
}

}  // namespace stepwell
