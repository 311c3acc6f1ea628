#include "server/rate_options.h"

#include <set>
#include <string>

#include "server/peer_address.h"

namespace stepwell {

RateLimits::Options RateOptions(const ServeOptions& options) {
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  return {.per_second = {number(options.ingest_bytes_per_second),
                         number(options.ingest_samples_per_second),
                         number(options.series_per_second), number(options.opens_per_second),
                         number(options.calls_per_second), number(options.read_bytes_per_second)},
          .wrong_tokens_per_minute = number(options.wrong_tokens_per_minute),
          .connections_per_address_max = number(options.connections_per_address_max),
          // Looked at when it was set.
          .shared_addresses =
              ParseAddresses(options.shared_addresses).value_or(std::set<std::string>())};
}

}  // namespace stepwell
