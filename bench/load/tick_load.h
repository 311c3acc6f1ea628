// TickLoad: the loads `day` and `wide`, made before any clock runs: by writer, in slices of about 1000
// samples as ChunkBodies. Thread-compatible.
//
//   const TickLoad load = MakeDay(/*hour=*/0, /*hours=*/24);
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/load/load_stream.h"
#include "storage/model.h"

namespace stepwell::bench {

// When the first hour of all loads begins.
inline constexpr std::int64_t kLoadStartUs =
    1'790'000'000'000'000 / 86'400'000'000 * 86'400'000'000;

inline constexpr std::size_t kChunkSamples = 1000;

// What one series is called, whoever stores it. The label set is that of its writer and its device.
struct LoadSeries {
  std::string metric_group;
  std::string name;
  std::string device;  // empty = none
};
std::vector<v1::Definition> DefinitionsOf(const std::vector<LoadSeries>& series);

struct TickWriter {
  // As LoadStream::Writer's.
  int rank = 0;
  // Those that share one have one stream to the master. From 0, without holes.
  int agent = 0;
  std::vector<LoadSeries> series;
  std::vector<SealedBody> bodies;
};

struct TickLoad {
  std::vector<TickWriter> writers;
  std::int64_t sample_count = 0;
  std::int64_t end_us = 0;
};

// Sees ticks [first, end) of a table of writer `index` of the load, in order.
struct TickRange {
  const TickTable& table;
  std::size_t first = 0;
  std::size_t end = 0;
};
SealedBody BodyOf(const TickRange& ticks);
using SeeTicks =
    std::function<void(const TickRange&, const std::vector<LoadSeries>&, std::size_t index)>;

// 8 machines of 8 GPUs at 1 Hz and a rank of 8 steps a second, 190 series: hours [hour, hour + hours),
// which follow those before them in time and in batches.
TickLoad MakeDay(int hour, int hours, const SeeTicks& see = nullptr);
// 64 machines (or so many) of 8 GPUs at 1 Hz and 8 ranks of 10 steps a second, 71 series each, minutes as
// above.
TickLoad MakeWide(int minute, int minutes, const SeeTicks& see = nullptr, int machines = 64);

}  // namespace stepwell::bench
