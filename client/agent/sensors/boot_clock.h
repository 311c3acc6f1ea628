// BootClock: the real clock, with a monotonic one that runs on while the machine is suspended, as the
// wall clock does. The agent runs by it: what was suspended is time that passed, so that ticks slept
// through are counted, a rate times its span is what the counter moved, and a connection that was
// silent all that while is known to be. Thread-safe.
#pragma once

#include "base/clock.h"

namespace stepwell::agent {

class BootClock final : public Clock {
 public:
  static BootClock& Get();
  absl::Time Now() const override;
  absl::Duration Monotonic() const override;
};

}  // namespace stepwell::agent
