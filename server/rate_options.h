// RateOptions: what `stepwell serve` was told of rates, as RateLimits take it. A pure function.
#pragma once

#include "server/rate_limits.h"
#include "server/settings.h"

namespace stepwell {

RateLimits::Options RateOptions(const ServeOptions& options);

}  // namespace stepwell
