// SparingLog: how often a line that strangers cause is written: once a second, and each says how many others there were since the
// one before, so that nobody fills a disk with it. Thread-safe.
//
//   if (const auto others = sparing.MaySay(now)) log::Warning("token_refused", {{"others_since", *others}});
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/steady_time.h"

namespace stepwell {

class SparingLog {
 public:
  // Nothing: not now, and it is counted.
  std::optional<std::int64_t> MaySay(SteadyTime now) ABSL_LOCKS_EXCLUDED(mu_) {
    const absl::MutexLock lock(&mu_);
    if (now - said_ < kEach) {
      ++left_out_;
      return std::nullopt;
    }
    said_ = now;
    return std::exchange(left_out_, 0);
  }

 private:
  static constexpr absl::Duration kEach = absl::Seconds(1);

  absl::Mutex mu_;
  SteadyTime said_ ABSL_GUARDED_BY(mu_) = SteadyTime::InfinitePast();
  std::int64_t left_out_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace stepwell
