// RateTable: an allowance for each key (a token, an address). Bounded: at `keys_max` those that are full are forgotten,
// which gives nothing away; where all are in use newcomers share one allowance, so that nobody wipes out what he owes
// by coming under many names. Thread-safe; allocates for a new key alone.
//
//   RateTable calls({.per_second = 100, .burst = 1000});
//   const absl::Duration wait = calls.TryTake("10.0.0.7", 1, SteadyTime::Now(clock));
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/steady_time.h"
#include "server/rate_allowance.h"

namespace stepwell {

class RateTable {
 public:
  explicit RateTable(const Rate& rate, std::size_t keys_max = 10'000)
      : rate_(rate), keys_max_(keys_max) {}

  const Rate& rate() const { return rate_; }
  // As RateAllowance's.
  absl::Duration TryTake(std::string_view key, double amount, SteadyTime now, double kept = 0)
      ABSL_LOCKS_EXCLUDED(mu_);
  void Spend(std::string_view key, double amount, SteadyTime now) ABSL_LOCKS_EXCLUDED(mu_);
  void GiveBack(std::string_view key, double amount, SteadyTime now) ABSL_LOCKS_EXCLUDED(mu_);
  // How long until something is left; zero for a key that used nothing, which is not noted.
  absl::Duration Wait(std::string_view key, SteadyTime now) ABSL_LOCKS_EXCLUDED(mu_);
  std::size_t key_count() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  RateAllowance& Of(std::string_view key, SteadyTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Rate rate_;
  const std::size_t keys_max_;
  mutable absl::Mutex mu_;
  absl::flat_hash_map<std::string, RateAllowance> allowances_ ABSL_GUARDED_BY(mu_);
  // When those that are full were last looked for: not for each newcomer.
  SteadyTime swept_ ABSL_GUARDED_BY(mu_) = SteadyTime::InfinitePast();
};

}  // namespace stepwell
