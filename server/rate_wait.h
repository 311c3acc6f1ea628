// RateWait: what a stream reads is waited for, on its own thread, by who may go on without it being refused (GrpcAnswers, an upload
// that reads back what earlier calls brought).
//
//   if (!AwaitRate(rates, RateKind::kReadBytes, payer, bytes, [&] { return !context->IsCancelled(); })) return Cancelled();
#pragma once

#include <functional>

#include "server/rate_limits.h"

namespace stepwell {

// Blocks until so much may be taken; what comes in a second is left to calls, which are refused where nothing is. False: `goes_on`
// (asked at least each 100 ms) said no first, and nothing was taken. Counts the wait (RateLimits::NoteSlowed).
bool AwaitRate(RateLimits& rates, RateKind kind, const RatePayer& payer, double amount,
               const std::function<bool()>& goes_on);

}  // namespace stepwell
