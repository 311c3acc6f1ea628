// RollupValues: the mins, maxs, sums and lasts of a rollup, encoded together: what lies close above the
// mins is counted from them, which takes fewer bits. Codec v1 holds each vector. A core; pure.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "storage/encoded_rollup.h"
#include "storage/rollup.h"

namespace stepwell {

// Sets mins, maxs, sums, lasts and relative of `encoded`. `numbers`: how many samples of each bucket
// are not NaN.
void EncodeRollupValues(const RollupColumn& column, const std::vector<std::int64_t>& numbers,
                        EncodedRollupColumn& encoded);
// The other way round. kDataLoss where the vectors contradict each other.
[[nodiscard]] absl::Status DecodeRollupValues(const EncodedRollupColumn& encoded,
                                              const std::vector<std::int64_t>& numbers,
                                              RollupColumn& column);

}  // namespace stepwell
