// SampleRun: samples of one series in time order, unpacked from the vectors of a row or of a head.
// Values; pure functions.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace stepwell {

struct Sample {
  std::int64_t time_us = 0;
  WriterNo writer_no{};
  std::int32_t batch = -1;
  std::int32_t attempt = 0;
  double value = 0;
};
using SampleRun = std::vector<Sample>;

// A total order of time, writer, batch and the value's bits: the same whether samples come from
// heads or from rows, so that a cursor means the same place after a fold.
bool ComesBefore(const Sample& a, const Sample& b);

// The samples of one series on shared ticks, as TickTable and rows have them.
struct TickSamples {
  std::span<const std::int64_t> times_us;
  std::span<const std::int32_t> batches;
  std::span<const std::uint8_t> presence;  // empty = every tick has a sample
  std::span<const double> values;          // one per present tick
  WriterNo writer_no{};
  std::int32_t attempt = 0;
};
void AppendSamples(const TickSamples& samples, SampleRun& run);
// By ComesBefore; cheap when it is sorted already, as it nearly always is.
void SortRun(SampleRun& run);

}  // namespace stepwell
