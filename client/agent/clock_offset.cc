#include "client/agent/clock_offset.h"

namespace stepwell::agent {

void ClockOffset::OnSent(const std::string& who, absl::Duration monotonic) {
  absl::MutexLock lock(&mu_);
  sent_[who] = monotonic;
}

void ClockOffset::OnAnswered(const std::string& who, std::int64_t server_time_us,
                             absl::Duration monotonic) {
  absl::MutexLock lock(&mu_);
  const auto sent = sent_.find(who);
  if (sent == sent_.end()) return;
  const absl::Duration half = (monotonic - sent->second) / 2;
  const Exchange exchange{absl::FromUnixMicros(server_time_us), sent->second + half, half};
  sent_.erase(sent);
  if (server_time_us <= 0) return;
  if (!best_ || exchange.error <= ErrorAt(*best_, monotonic)) best_ = exchange;
}

void ClockOffset::Forget() {
  absl::MutexLock lock(&mu_);
  sent_.clear();
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
