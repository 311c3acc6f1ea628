// What charts ask of the load `day` over a range of time.
#pragma once

#include <cstdint>

#include "stepwell/v1/query.pb.h"

namespace stepwell::bench {

// One GPU of one machine in 1000 buckets.
v1::QueryBucketsRequest OneSeries(std::int64_t start_us, std::int64_t end_us,
                                  v1::Resolution resolution);
// All 64 GPUs in 500 buckets.
v1::QueryBucketsRequest AllGpus(std::int64_t start_us, std::int64_t end_us,
                                v1::Resolution resolution);

}  // namespace stepwell::bench
