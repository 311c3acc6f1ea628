// RivalLoad: samples as both sides take them, made before any clock runs: by writer, in slices of about
// 1000 samples as ChunkBodies for Stepwell, and of five times that as remote-write requests, value and
// batch, for VictoriaMetrics. Thread-compatible.
//
//   const RivalLoad load = MakeDay(/*hour=*/0, /*hours=*/24);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/load/load_stream.h"

namespace stepwell::bench {

// When the first hour of all loads begins.
inline constexpr std::int64_t kLoadStartUs =
    1'790'000'000'000'000 / 86'400'000'000 * 86'400'000'000;

// What one series is called on both sides. The label set is that of its writer and its device.
struct RivalSeries {
  std::string metric_group;
  std::string name;
  std::string device;  // empty = none
};
std::vector<v1::Definition> DefinitionsOf(const std::vector<RivalSeries>& series);

struct RivalWriter {
  // As LoadStream::Writer's.
  int rank = 0;
  // Those that share one have one stream to the master.
  int agent = 0;
  std::vector<RivalSeries> series;
  std::vector<SealedBody> bodies;
  // Snappy-compressed WriteRequests.
  std::vector<std::string> remote_writes;
};

struct RivalLoad {
  std::vector<RivalWriter> writers;
  std::int64_t sample_count = 0;
  std::int64_t end_us = 0;
};

// 8 machines of 8 GPUs at 1 Hz and a rank of 8 steps a second, 190 series: hours [hour, hour + hours),
// which follow those before them in time and in batches.
RivalLoad MakeDay(int hour, int hours);
// 64 machines of 8 GPUs at 1 Hz and 512 ranks of 10 steps a second, 4544 series, minutes as above.
RivalLoad MakeWide(int minute, int minutes);

}  // namespace stepwell::bench
