#include "server/sample_run.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace stepwell {

bool ComesBefore(const Sample& a, const Sample& b) {
  if (a.time_us != b.time_us) return a.time_us < b.time_us;
  if (a.writer_no != b.writer_no) return a.writer_no < b.writer_no;
  if (a.batch != b.batch) return a.batch < b.batch;
  return std::bit_cast<std::uint64_t>(a.value) < std::bit_cast<std::uint64_t>(b.value);
}

void AppendSamples(const TickSamples& samples, SampleRun& run) {
  run.reserve(run.size() + samples.values.size());
  std::size_t value = 0;
  for (std::size_t tick = 0; tick < samples.times_us.size(); ++tick) {
    if (!samples.presence.empty() && samples.presence[tick] == 0) continue;
    STEPWELL_CHECK(value < samples.values.size());
    run.push_back({.time_us = samples.times_us[tick],
                   .writer_no = samples.writer_no,
                   .batch = samples.batches[tick],
                   .attempt = samples.attempt,
                   .value = samples.values[value++]});
  }
}

void SortRun(SampleRun& run) {
  if (!std::is_sorted(run.begin(), run.end(), ComesBefore)) {
    std::sort(run.begin(), run.end(), ComesBefore);
  }
}

}  // namespace stepwell
