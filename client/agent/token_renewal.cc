#include "client/agent/token_renewal.h"

#include <algorithm>
#include <utility>

namespace stepwell::agent {
namespace {

// Before its end it is shown no more: what is under way then is still taken.
constexpr absl::Duration kMarginMax = absl::Seconds(30);
constexpr double kMarginShare = 0.1;
constexpr double kRenewShareMin = 0.4;
constexpr double kRenewShareRange = 0.2;
// Where each one lives shorter than the one before, as near the end of who made them, they are not renewed ever faster.
constexpr absl::Duration kRenewIntervalMin = absl::Seconds(15);
// Whatever was said of its life: who shows two in a second shows none.
constexpr absl::Duration kFetchIntervalMin = absl::Milliseconds(500);
// An older master, one that asks nobody, a credential without that grant: time alone heals it seldom.
constexpr absl::Duration kRefusedWait = absl::Minutes(5);
// What was refused and lives is tried again after at most so much of what is left of it.
constexpr double kTryAgainShare = 0.25;

bool MayPass(const absl::Status& why) {
  switch (why.code()) {
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kInvalidArgument:
      return false;
    default:
      return true;
  }
}

}  // namespace

absl::Duration TokenRenewal::NextTime(absl::Duration now) const {
  return now < until_ ? std::min(until_, fetch_at_) : fetch_at_;
}

void TokenRenewal::OnFetched(std::string text, absl::Duration lives, absl::Duration asked,
                             double chance) {
  // The one before was good until its turn.
  if (!text_.empty() && !is_refused_) rejections_.Reset();
  text_ = std::move(text);
  is_refused_ = false;
  is_aside_ = false;
  until_ = asked + lives - std::min(kMarginMax, lives * kMarginShare);
  lives_longest_ = std::max(lives_longest_, lives);
  const absl::Duration interval_min =
      std::max(std::min(kRenewIntervalMin, lives_longest_ * kRenewShareMin), kFetchIntervalMin);
  fetch_at_ = asked + std::max(lives * (kRenewShareMin + kRenewShareRange * chance), interval_min);
  backoff_.Reset();
}

void TokenRenewal::OnFailed(const absl::Status& why, const std::string& shown, absl::Duration now) {
  if (absl::IsUnauthenticated(why)) {
    if (!shown.empty() && shown == text_) {
      is_refused_ = true;
      // What it was fetched with may be good still.
      is_aside_ = !is_only_one_;
    } else if (shown.empty()) {
      // Nor is the other one, so that it may be the master: the one of before again, while it lives.
      is_aside_ = false;
    }
    return AwaitNextTry(now);
  }
  // One that is shown goes on for a while: it is worth another try, whatever was said.
  const bool is_soon = MayPass(why) || now < until_;
  fetch_at_ = now + (is_soon ? backoff_.NextDelay() : kRefusedWait);
}

void TokenRenewal::TrySoon(absl::Duration now) {
  fetch_at_ = std::min(fetch_at_, now + kFetchIntervalMin);
}

void TokenRenewal::OnRejected(const std::string& text, absl::Duration now) {
  // Many writers show one token, and say the same.
  if (text.empty() || text != text_ || is_refused_) return;
  is_refused_ = true;
  is_aside_ = !is_only_one_;
  AwaitNextTry(now);
}

void TokenRenewal::AwaitNextTry(absl::Duration now) {
  absl::Duration delay = rejections_.NextDelay();
  if (now < until_) {
    delay = std::min(delay, std::max((until_ - now) * kTryAgainShare, kFetchIntervalMin));
  }
  fetch_at_ = now + delay;
}

}  // namespace stepwell::agent
