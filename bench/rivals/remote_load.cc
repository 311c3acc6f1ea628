#include "bench/rivals/remote_load.h"

#include <snappy.h>

#include <algorithm>

#include "bench/rivals/remote_write.h"

namespace stepwell::bench {
namespace {

// So many chunks' worth in a request: 10,000 samples with batches.
constexpr std::size_t kRequestChunks = 5;

std::string RequestOf(const TickRange& ticks, const std::vector<LoadSeries>& series, int writer) {
  RemoteWrite request;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const std::vector<double>& values = ticks.table.columns[i].values;
    request.BeginSeries(series[i], writer, /*is_batch=*/false);
    for (std::size_t tick = ticks.first; tick < ticks.end; ++tick) {
      request.AddSample(values[tick], ticks.table.times_us[tick] / 1000);
    }
    request.BeginSeries(series[i], writer, /*is_batch=*/true);
    for (std::size_t tick = ticks.first; tick < ticks.end; ++tick) {
      request.AddSample(ticks.table.batches[tick], ticks.table.times_us[tick] / 1000);
    }
  }
  const std::string bytes = request.Take();
  std::string packed;
  snappy::Compress(bytes.data(), bytes.size(), &packed);
  return packed;
}

}  // namespace

SeeTicks RemoteLoad::Adder() {
  return [this](const TickRange& ticks, const std::vector<LoadSeries>& series, std::size_t index) {
    requests_.resize(std::max(requests_.size(), index + 1));
    const std::size_t step = kRequestChunks * (kChunkSamples / series.size());
    for (std::size_t at = ticks.first; at < ticks.end; at += step) {
      requests_[index].push_back(RequestOf({ticks.table, at, std::min(at + step, ticks.end)},
                                           series, static_cast<int>(index)));
    }
  };
}

}  // namespace stepwell::bench
