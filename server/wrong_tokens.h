// WrongTokens: slows down who guesses tokens: each address may show so many wrong ones, and
// then hears kResourceExhausted for any, whether it would be right or not, until something is left again: told apart they
// would be guesses. Nobody loses what he has: a token that was right at an address within the last hour goes on there; and who
// shows one that was right and has ended guesses nothing. Thread-safe; bounded.
//
//   STEPWELL_ASSIGN_OR_RETURN(const Caller caller, wrong.Judge(address, guard.Identify(authorization)));
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/steady_time.h"
#include "server/caller.h"
#include "server/rate_table.h"

namespace stepwell {

class WrongTokens {
 public:
  // Of one place. A minute's worth may come at once.
  explicit WrongTokens(double per_minute)
      : addresses_({.per_second = per_minute / 60, .burst = per_minute}), per_minute_(per_minute) {}

  // `found` where it may be told. What counts is kUnauthenticated alone, of what never was a token (EndedTokenRefusal). An
  // empty place is never refused.
  absl::StatusOr<Caller> Judge(std::string_view place, absl::StatusOr<Caller> found, SteadyTime now)
      ABSL_LOCKS_EXCLUDED(mu_);
  std::uint64_t refused_count() const { return refused_.load(std::memory_order_relaxed); }

 private:
  // Notes that it was right, too, unless it `is_late`.
  bool WasRight(std::string_view place, const std::string& payer, SteadyTime now, bool is_late)
      ABSL_LOCKS_EXCLUDED(mu_);

  RateTable addresses_;
  const double per_minute_;
  std::atomic<std::uint64_t> refused_{0};
  absl::Mutex mu_;
  // When a token was last right at a place.
  absl::flat_hash_map<std::string, SteadyTime> right_ ABSL_GUARDED_BY(mu_);
  SteadyTime swept_ ABSL_GUARDED_BY(mu_) = SteadyTime::InfinitePast();
};

}  // namespace stepwell
