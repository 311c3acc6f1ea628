#include "bench/load/day_questions.h"

#include <numeric>

#include "absl/strings/str_cat.h"

namespace stepwell::bench {

v1::QueryBucketsRequest AllGpus(std::int64_t start_us, std::int64_t end_us,
                                v1::Resolution resolution) {
  v1::QueryBucketsRequest request;
  request.mutable_time_range()->set_start_time_us(start_us);
  request.mutable_time_range()->set_end_time_us(end_us);
  request.add_selectors()->set_name("gpu_util");
  request.set_max_buckets(500);
  request.set_resolution(resolution);
  return request;
}

DayGpu GpuAt(int index) { return {index % 8, index / 8 % 8}; }

v1::QueryBucketsRequest OneSeries(std::int64_t start_us, std::int64_t end_us,
                                  v1::Resolution resolution, DayGpu gpu) {
  v1::QueryBucketsRequest request = AllGpus(start_us, end_us, resolution);
  auto& labels = *request.mutable_selectors(0)->mutable_labels();
  labels["device"] = absl::StrCat(gpu.device);
  labels["agent"] = absl::StrCat("bench-", gpu.machine + 1);
  request.set_max_buckets(1000);
  return request;
}

absl::Status CheckBuckets(const v1::QueryBucketsRequest& request,
                          const v1::QueryBucketsResponse& response, std::uint64_t samples) {
  if (response.resolution() != request.resolution()) {
    return absl::InternalError(absl::StrCat(v1::Resolution_Name(request.resolution()),
                                            " was asked for, the answer is of ",
                                            v1::Resolution_Name(response.resolution())));
  }
  std::uint64_t found = 0;
  for (const auto& series : response.series())
    found = std::accumulate(series.counts().begin(), series.counts().end(), found);
  const auto series_count = static_cast<std::uint64_t>(response.series_size());
  if (series_count > 0 && found <= samples + 2 * series_count &&
      found + 2 * series_count >= samples) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat("buckets of ", found, " samples, not ", samples));
}

}  // namespace stepwell::bench
