// SteppedClock: a clock that moves when told, and whose wall clock somebody sets: the other one goes on. Thread-safe.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"

namespace stepwell::testing {

class SteppedClock final : public Clock {
 public:
  absl::Time Now() const override {
    absl::MutexLock lock(&mu_);
    return clock_.Now() + set_by_;
  }
  absl::Duration Monotonic() const override { return clock_.Monotonic(); }
  void Advance(absl::Duration by) { clock_.Advance(by); }
  // Forward, or back.
  void SetBy(absl::Duration by) {
    absl::MutexLock lock(&mu_);
    set_by_ += by;
  }

 private:
  FakeClock clock_;
  mutable absl::Mutex mu_;
  absl::Duration set_by_ ABSL_GUARDED_BY(mu_) = absl::ZeroDuration();
};

}  // namespace stepwell::testing
