#include "server/rate_wait.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "base/steady_time.h"

namespace stepwell {
namespace {

// Of what a token may read, streams leave so much to calls that are refused where nothing is left.
constexpr absl::Duration kLeftToCalls = absl::Seconds(1);
// Whether its caller is there still.
constexpr absl::Duration kLookEach = absl::Milliseconds(100);

}  // namespace

bool AwaitRate(RateLimits& rates, RateKind kind, const RatePayer& payer, double amount,
               const std::function<bool()>& goes_on) {
  while (true) {
    const absl::Duration wait = rates.TryTake(kind, payer, amount, kLeftToCalls).wait;
    if (wait == absl::ZeroDuration()) return true;
    if (!goes_on()) return false;
    const SteadyTime begin = SteadyTime::Now();
    absl::SleepFor(std::min(wait, kLookEach));
    rates.NoteSlowed(kind, SteadyTime::Now() - begin);
  }
}

}  // namespace stepwell
