// Clock: where "now" comes from, so that tests can move it. Thread-safe.
//
//   RealClock& clock = RealClock::Get();
//   const std::int64_t received_time_us = absl::ToUnixMicros(clock.Now());
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace stepwell {

class Clock {
 public:
  virtual ~Clock() = default;
  // Wall clock; may step. For stamps that people read and for the database.
  virtual absl::Time Now() const = 0;
  // Since an arbitrary start; never steps back. For intervals and deadlines.
  virtual absl::Duration Monotonic() const = 0;
};

class RealClock final : public Clock {
 public:
  static RealClock& Get();
  absl::Time Now() const override;
  absl::Duration Monotonic() const override;
};

// A clock that moves when told.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(absl::Time now = absl::UnixEpoch() + absl::Hours(24 * 365 * 50)) : now_(now) {}
  absl::Time Now() const override;
  absl::Duration Monotonic() const override;
  void Advance(absl::Duration by);

 private:
  mutable absl::Mutex mu_;
  absl::Time now_ ABSL_GUARDED_BY(mu_);
  absl::Duration monotonic_ ABSL_GUARDED_BY(mu_) = absl::ZeroDuration();
};

}  // namespace stepwell
