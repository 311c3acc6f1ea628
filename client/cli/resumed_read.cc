#include "client/cli/resumed_read.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "base/backoff.h"
#include "client/cli/units.h"

namespace stepwell::cli {
namespace {

// Another call may go well. A master that leaves ends its streams with kCancelled; it ends a read of over a
// minute with kDeadlineExceeded.
bool Passes(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kAborted:
      return true;
    default:
      return false;
  }
}

}  // namespace

absl::Status ResumedRead::Run(v1::ReadSamplesRequest request, const Take& take) {
  Backoff backoff({.first = absl::Milliseconds(200), .longest = absl::Seconds(2)});
  std::optional<absl::Duration> give_up;  // on the clock; none = the last call brought something
  for (;;) {
    bool ended = false;
    absl::Status status = options_.call(request, [&](const v1::ReadSamplesResponse& response) {
      request.set_cursor(response.cursor());
      give_up.reset();
      backoff.Reset();
      const bool wanted = take(response);
      ended = !wanted || response.has_completeness();
      return wanted;
    });
    if (ended) return absl::OkStatus();
    if (status.ok()) status = absl::UnavailableError("the answer ended before its last message");
    if (request.cursor().empty() || !Passes(status)) return status;
    const absl::Duration now = options_.clock.Monotonic();
    if (give_up && now >= *give_up) return status;
    if (!give_up) {
      give_up = now + options_.patience;
      if (options_.on_break) options_.on_break(status);
    }
    if (!options_.wait(backoff.NextDelay())) return absl::CancelledError("stopped");
  }
}

std::string BreakText(const absl::Status& why, std::int64_t sample_count) {
  if (absl::IsDeadlineExceeded(why)) return {};
  return absl::StrCat("stepwell: the master broke off after ", CountText(sample_count),
                      " samples (", why.message(), "); waiting for it to go on\n");
}

}  // namespace stepwell::cli
