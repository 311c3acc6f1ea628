#include "bench/rivals/day_load.h"

#include <snappy.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "bench/rivals/remote_write.h"
#include "bench/store/day_tables.h"

namespace stepwell::bench {
namespace {

constexpr int kRank = 8;
constexpr std::size_t kChunkSamples = 1000;
// So many chunks' worth in a request: what vmagent sends, about 10,000 samples.
constexpr std::size_t kRequestChunks = 5;

// A table's ticks [first, first + count).
struct Slice {
  const TickTable& table;
  std::size_t first;
  std::size_t count;
};

SealedBody BodyOf(const Slice& slice) {
  v1::ChunkBody body;
  auto* table = body.add_tables();
  table->set_tick_group(1);
  table->set_first_time_us(slice.table.times_us[slice.first]);
  table->set_first_batch(slice.table.batches[slice.first]);
  for (std::size_t i = slice.first + 1; i < slice.first + slice.count; ++i) {
    table->add_time_deltas_us(slice.table.times_us[i] - slice.table.times_us[i - 1]);
    table->add_batch_deltas(slice.table.batches[i] - slice.table.batches[i - 1]);
  }
  for (std::size_t i = 0; i < slice.table.columns.size(); ++i) {
    auto* column = table->add_columns();
    column->set_ref(static_cast<std::uint32_t>(i + 1));
    const auto begin =
        slice.table.columns[i].values.begin() + static_cast<std::ptrdiff_t>(slice.first);
    column->mutable_doubles()->Add(begin, begin + static_cast<std::ptrdiff_t>(slice.count));
  }
  return {body.SerializeAsString(), slice.table.times_us[slice.first + slice.count - 1]};
}

void AddTo(RemoteWrite& request, const Slice& slice, int writer,
           const std::vector<DaySeries>& series) {
  for (std::size_t i = 0; i < series.size(); ++i) {
    const std::vector<double>& values = slice.table.columns[i].values;
    request.BeginSeries(series[i], writer, /*is_batch=*/false);
    for (std::size_t tick = slice.first; tick < slice.first + slice.count; ++tick) {
      request.AddSample(values[tick], slice.table.times_us[tick] / 1000);
    }
    request.BeginSeries(series[i], writer, /*is_batch=*/true);
    for (std::size_t tick = slice.first; tick < slice.first + slice.count; ++tick) {
      request.AddSample(slice.table.batches[tick], slice.table.times_us[tick] / 1000);
    }
  }
}

void AddHour(const TickTable& table, int writer, DayWriter& to) {
  const std::vector<DaySeries> series = DaySeriesOf(writer);
  const std::size_t ticks_per_chunk = kChunkSamples / series.size();
  RemoteWrite request;
  std::size_t chunk_count = 0;
  const auto send = [&] {
    const std::string bytes = request.Take();
    std::string packed;
    snappy::Compress(bytes.data(), bytes.size(), &packed);
    to.remote_writes.push_back(std::move(packed));
    chunk_count = 0;
  };
  for (std::size_t first = 0; first < table.times_us.size(); first += ticks_per_chunk) {
    const Slice slice = {table, first, std::min(ticks_per_chunk, table.times_us.size() - first)};
    to.bodies.push_back(BodyOf(slice));
    AddTo(request, slice, writer, series);
    if (++chunk_count == kRequestChunks) send();
  }
  if (chunk_count > 0) send();
  to.sample_count += static_cast<std::int64_t>(table.times_us.size() * series.size());
}

}  // namespace

std::vector<DaySeries> DaySeriesOf(int writer) {
  std::vector<DaySeries> series;
  if (writer == kRank) {
    for (int i = 0; i < kDayTimings; ++i)
      series.push_back({"timing", absl::StrCat("scope_", i), ""});
    return series;
  }
  // As MachineHour orders them.
  for (int copy = 0; copy < 8; ++copy) {
    for (const testing::MetricKind& kind : testing::MetricKinds(1)) {
      if (copy >= SeriesOf(kind.name)) continue;
      const bool is_many = SeriesOf(kind.name) > 1;
      series.push_back({is_many ? "gpu" : "machine", kind.name, is_many ? absl::StrCat(copy) : ""});
    }
  }
  return series;
}

std::vector<v1::Definition> DefinitionsOf(const std::vector<DaySeries>& series) {
  std::vector<v1::Definition> definitions(series.size());
  for (std::size_t i = 0; i < series.size(); ++i) {
    v1::Definition& definition = definitions[i];
    definition.set_ref(static_cast<std::uint32_t>(i + 1));
    definition.set_tick_group(1);
    definition.set_metric_group(series[i].metric_group);
    definition.set_name(series[i].name);
    if (!series[i].device.empty()) (*definition.mutable_labels())["device"] = series[i].device;
    definition.set_kind(v1::SERIES_KIND_GAUGE);
  }
  return definitions;
}

DayLoad::DayLoad(std::int64_t first_hour_us, int hours, std::uint64_t seed)
    : writers_(kDayWriters) {
  for (int hour = 0; hour < hours; ++hour) {
    const std::int64_t start_us = first_hour_us + hour * kHourUs;
    const std::uint64_t hour_seed = (seed * 1000 + static_cast<std::uint64_t>(hour)) * 10;
    for (int writer = 0; writer < kDayWriters; ++writer) {
      const std::uint64_t writer_seed = hour_seed + static_cast<std::uint64_t>(writer);
      const TickTable table =
          writer == kRank ? RankHour(writer_seed, start_us) : MachineHour(writer_seed, start_us);
      AddHour(table, writer, writers_[static_cast<std::size_t>(writer)]);
    }
  }
  for (const DayWriter& writer : writers_) sample_count_ += writer.sample_count;
}

}  // namespace stepwell::bench
