#include "client/agent/reconnect_delay.h"

namespace stepwell::agent {

void ReconnectDelay::OnAnswered(absl::Duration now) {
  seen_at_ = now;
  prompt_.Reset();
  soon_.Reset();
  later_.Reset();
}

absl::Duration ReconnectDelay::Next(absl::Duration now) {
  const absl::Duration away = now - seen_at_;
  if (away <= restart_) return prompt_.NextDelay();
  return away <= patience_ ? soon_.NextDelay() : later_.NextDelay();
}

}  // namespace stepwell::agent
