#include "server/rate_refusal.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace stepwell {
namespace {

constexpr char kRetryPayload[] = "stepwell/retry_ms";

}  // namespace

absl::Status RateRefusal(absl::string_view limit, double allowed, absl::string_view words,
                         absl::Duration wait) {
  const absl::Duration delay = std::max(wait, absl::Milliseconds(1));
  absl::Status status = absl::ResourceExhaustedError(absl::StrFormat(
      "%s; --%s is the limit; come again in %.3g s", words, limit, absl::ToDoubleSeconds(delay)));
  status.SetPayload("stepwell/metadata/limit", absl::Cord(limit));
  status.SetPayload("stepwell/metadata/allowed", absl::Cord(absl::StrFormat("%.0f", allowed)));
  return ComeAgain(std::move(status), "RATE_LIMIT", delay);
}

absl::Status ComeAgain(absl::Status status, absl::string_view reason, absl::Duration wait) {
  status.SetPayload("stepwell/reason", absl::Cord(reason));
  status.SetPayload(
      kRetryPayload,
      absl::Cord(absl::StrCat(absl::ToInt64Milliseconds(absl::Ceil(wait, absl::Milliseconds(1))))));
  return status;
}

std::optional<absl::Duration> RetryDelayOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kRetryPayload);
  std::int64_t milliseconds = 0;
  if (!payload || !absl::SimpleAtoi(std::string(*payload), &milliseconds)) return std::nullopt;
  return absl::Milliseconds(milliseconds);
}

std::string RetryAfterText(absl::Duration delay) {
  return absl::StrCat(
      std::max<std::int64_t>(1, absl::ToInt64Seconds(absl::Ceil(delay, absl::Seconds(1)))));
}

}  // namespace stepwell
