#include "client/agent/master_pauses.h"

namespace stepwell::agent {
namespace {

// An older master, or one that asks nobody: time alone heals it seldom.
constexpr absl::Duration kNoneWait = absl::Minutes(5);
// Nobody asked again for so long: its trials are over.
constexpr absl::Duration kForgottenAfter = absl::Hours(1);

bool IsSilent(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

bool HasNone(const absl::Status& status) {
  return absl::IsUnimplemented(status) || absl::IsFailedPrecondition(status);
}

}  // namespace

absl::Duration MasterPauses::Until(const std::string& server) const {
  const auto found = pauses_.find(server);
  return found == pauses_.end() ? -absl::InfiniteDuration() : found->second.until;
}

void MasterPauses::OnAnswer(const std::string& server, const absl::Status& answer, bool holds_one,
                            absl::Duration now) {
  std::erase_if(pauses_,
                [now](const auto& each) { return now - each.second.until > kForgottenAfter; });
  if (HasNone(answer) && !holds_one) {
    pauses_[server].until = now + kNoneWait;
  } else if (HasNone(answer) || IsSilent(answer)) {
    Pause& pause = pauses_[server];
    pause.until = now + pause.backoff.NextDelay();
  } else {
    pauses_.erase(server);
  }
}

}  // namespace stepwell::agent
