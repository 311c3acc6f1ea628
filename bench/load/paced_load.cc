#include "bench/load/paced_load.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "base/status_macros.h"

namespace stepwell::bench {
namespace {

constexpr int kWriters = 64;
// 500 samples/s per writer, ten chunks a second of 50 samples each.
constexpr ChunkShape kShape{.series_count = 10, .tick_count = 5, .tick_interval_us = 20'000};
constexpr absl::Duration kPeriod = absl::Milliseconds(100);

}  // namespace

PacedLoad::PacedLoad(const std::string& address, const std::string& trial) {
  for (int i = 0; i < kWriters; ++i) {
    MadeUpChunks chunks(kShape, i);
    std::vector<v1::Definition> definitions = chunks.definitions();
    writers_.push_back(std::unique_ptr<Writer>(
        new Writer{std::move(chunks), {address, trial, i, std::move(definitions)}}));
  }
}

absl::Status PacedLoad::Open() {
  for (const auto& writer : writers_) STEPWELL_RETURN_IF_ERROR(writer->stream.Open());
  return absl::OkStatus();
}

absl::StatusOr<double> PacedLoad::AckP99Ms(absl::Duration duration) {
  // One thread keeps the pace: writer i sends at phase i/64 of each period.
  const absl::Time begin = absl::Now() + absl::Milliseconds(10);
  const std::int64_t rounds = duration / kPeriod;
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (int i = 0; i < kWriters; ++i) {
      Writer& writer = *writers_[static_cast<std::size_t>(i)];
      absl::SleepFor(begin + kPeriod * round + kPeriod * i / kWriters - absl::Now());
      STEPWELL_RETURN_IF_ERROR(writer.stream.Send(writer.chunks.Next()));
    }
  }
  std::vector<double> latencies;
  for (const auto& writer : writers_) {
    STEPWELL_RETURN_IF_ERROR(writer->stream.AwaitAcks());
    const std::vector<double> some = writer->stream.TakeLatencies();
    latencies.insert(latencies.end(), some.begin(), some.end());
  }
  std::sort(latencies.begin(), latencies.end());
  return latencies[latencies.size() * 99 / 100] * 1000;
}

std::vector<std::vector<double>> PacedLoad::AckTimes() const {
  std::vector<std::vector<double>> times;
  for (const auto& writer : writers_) times.push_back(writer->stream.AckTimes());
  return times;
}

}  // namespace stepwell::bench
