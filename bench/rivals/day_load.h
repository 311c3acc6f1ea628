// DayLoad: the load `day` as both sides take it, made before any clock runs: 9 writers, 190 series, hour
// by hour, each slice of about 1000 samples as a ChunkBody for Stepwell and as part of a remote-write
// request, value and batch, for VictoriaMetrics. Thread-compatible.
//
//   const DayLoad load(/*first_hour_us=*/start, /*hours=*/24, /*seed=*/1);
//   for (const DayWriter& writer : load.writers()) ...
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/load/load_stream.h"

namespace stepwell::bench {

inline constexpr int kDayWriters = 9;

// What one series is called on both sides. The label set is that of the agent and its device.
struct DaySeries {
  std::string metric_group;
  std::string name;
  std::string device;  // empty = none
};

// The series of one writer: 0 ... 7 are machines, 8 is a rank.
std::vector<DaySeries> DaySeriesOf(int writer);
std::vector<v1::Definition> DefinitionsOf(const std::vector<DaySeries>& series);

struct DayWriter {
  std::vector<SealedBody> bodies;
  // Snappy-compressed WriteRequests.
  std::vector<std::string> remote_writes;
  std::int64_t sample_count = 0;
};

class DayLoad {
 public:
  DayLoad(std::int64_t first_hour_us, int hours, std::uint64_t seed);
  const std::vector<DayWriter>& writers() const { return writers_; }
  std::int64_t sample_count() const { return sample_count_; }

 private:
  std::vector<DayWriter> writers_;
  std::int64_t sample_count_ = 0;
};

}  // namespace stepwell::bench
