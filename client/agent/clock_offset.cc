#include "client/agent/clock_offset.h"

namespace stepwell::agent {
namespace {

// Opens tell the time in whole microseconds.
constexpr absl::Duration kStampError = absl::Microseconds(1);
// Traces say it each ten seconds.
constexpr absl::Duration kTracedFor = absl::Seconds(30);

}  // namespace

void ClockOffset::OnSent(const std::string& who, absl::Duration monotonic) {
  absl::MutexLock lock(&mu_);
  sent_[who] = monotonic;
}

void ClockOffset::OnAsked(const std::string& who, absl::Duration monotonic) {
  absl::MutexLock lock(&mu_);
  sent_[who] = monotonic;
  asked_at_ = monotonic;
}

void ClockOffset::OnAnswered(const std::string& who, absl::Time server_time,
                             absl::Duration monotonic) {
  absl::MutexLock lock(&mu_);
  const auto sent = sent_.find(who);
  if (sent == sent_.end()) return;
  const absl::Duration half = (monotonic - sent->second) / 2;
  // From the stamp to the middle the clocks drift apart, too.
  const absl::Duration error = half * (1 + kDriftMax) + kStampError;
  const Exchange exchange{server_time, sent->second + half, error};
  sent_.erase(sent);
  if (server_time <= absl::UnixEpoch()) return;
  const bool is_better = !best_ || is_of_before_ || exchange.error <= ErrorAt(*best_, monotonic);
  if (!is_better && !Contradict(*best_, exchange)) return;
  best_ = exchange;
  is_of_before_ = false;
}

bool ClockOffset::Contradict(const Exchange& before, const Exchange& after) {
  const absl::Duration apart = (after.server_time - before.server_time) - (after.at - before.at);
  return absl::AbsDuration(apart) > ErrorAt(before, after.at) + after.error;
}

void ClockOffset::Forget() {
  absl::MutexLock lock(&mu_);
  sent_.clear();
  is_of_before_ = best_.has_value();
  asked_at_ = -absl::InfiniteDuration();
}

bool ClockOffset::IsAskDue(absl::Duration monotonic) const {
  absl::MutexLock lock(&mu_);
  const bool is_traced = monotonic - traced_at_ < kTracedFor;
  return monotonic - asked_at_ >= (is_traced ? kAskIntervalOfTraces : kAskInterval);
}

void ClockOffset::NoteTraced(absl::Duration monotonic) {
  absl::MutexLock lock(&mu_);
  traced_at_ = monotonic;
}

std::optional<ClockOffset::Reading> ClockOffset::Read(absl::Time now,
                                                      absl::Duration monotonic) const {
  absl::MutexLock lock(&mu_);
  if (!best_) return std::nullopt;
  const absl::Time server_now = best_->server_time + (monotonic - best_->at);
  return Reading{server_now - now, ErrorAt(*best_, monotonic)};
}

absl::Duration ClockOffset::ErrorAt(const Exchange& exchange, absl::Duration monotonic) {
  return exchange.error + (monotonic - exchange.at) * kDriftMax;
}

}  // namespace stepwell::agent
