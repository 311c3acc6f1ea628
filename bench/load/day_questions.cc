#include "bench/load/day_questions.h"

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

v1::QueryBucketsRequest OneSeries(std::int64_t start_us, std::int64_t end_us,
                                  v1::Resolution resolution) {
  v1::QueryBucketsRequest request = AllGpus(start_us, end_us, resolution);
  auto& labels = *request.mutable_selectors(0)->mutable_labels();
  labels["device"] = "3";
  labels["agent"] = "bench-1";
  request.set_max_buckets(1000);
  return request;
}

}  // namespace stepwell::bench
