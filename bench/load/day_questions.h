// What charts ask of the load `day` over a range of time.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "stepwell/v1/query.pb.h"

namespace stepwell::bench {

inline constexpr int kDayGpus = 64;
// One of them, from 0: whatever follows each other lies on different machines.
struct DayGpu {
  int machine = 0;
  int device = 3;
};
DayGpu GpuAt(int index);

// One GPU of one machine in 1000 buckets.
v1::QueryBucketsRequest OneSeries(std::int64_t start_us, std::int64_t end_us,
                                  v1::Resolution resolution, DayGpu gpu = {});
// All 64 GPUs in 500 buckets.
v1::QueryBucketsRequest AllGpus(std::int64_t start_us, std::int64_t end_us,
                                v1::Resolution resolution);

// An error unless the answer was made of what `request` names, and of `samples` samples. Of each series one at
// either end may have jittered out of the range, or into it. REQUIRES: the request names a resolution.
absl::Status CheckBuckets(const v1::QueryBucketsRequest& request,
                          const v1::QueryBucketsResponse& response, std::uint64_t samples);

}  // namespace stepwell::bench
