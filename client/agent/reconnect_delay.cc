#include "client/agent/reconnect_delay.h"

namespace stepwell::agent {

void ReconnectDelay::OnAnswered(absl::Duration now) {
  seen_at_ = now;
  soon_.Reset();
  later_.Reset();
}

absl::Duration ReconnectDelay::Next(absl::Duration now) {
  return now - seen_at_ <= patience_ ? soon_.NextDelay() : later_.NextDelay();
}

}  // namespace stepwell::agent
