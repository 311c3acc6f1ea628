#include "bench/rivals/rival_load.h"

#include <snappy.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "bench/rivals/remote_write.h"
#include "bench/store/day_tables.h"

namespace stepwell::bench {
namespace {

constexpr std::size_t kChunkSamples = 1000;
// So many chunks' worth in a request: about as many samples as vmagent sends, 10,000 with batches.
constexpr std::size_t kRequestChunks = 5;
constexpr std::int64_t kMinuteUs = 60'000'000;
constexpr int kWideMachines = 64;
constexpr int kWideRanksPerMachine = 8;

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

std::string RemoteWriteOf(const Slice& slice, const std::vector<RivalSeries>& series, int writer) {
  RemoteWrite request;
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
  const std::string bytes = request.Take();
  std::string packed;
  snappy::Compress(bytes.data(), bytes.size(), &packed);
  return packed;
}

// Ticks [first, end) of the table, for writer `index` of the load.
void AddTicks(const TickTable& table, std::size_t first, std::size_t end, std::size_t index,
              RivalLoad& load) {
  RivalWriter& writer = load.writers[index];
  const std::size_t ticks_per_chunk = kChunkSamples / writer.series.size();
  for (std::size_t at = first; at < end; at += ticks_per_chunk) {
    writer.bodies.push_back(BodyOf({table, at, std::min(ticks_per_chunk, end - at)}));
  }
  const std::size_t ticks_per_request = kRequestChunks * ticks_per_chunk;
  for (std::size_t at = first; at < end; at += ticks_per_request) {
    writer.remote_writes.push_back(RemoteWriteOf({table, at, std::min(ticks_per_request, end - at)},
                                                 writer.series, static_cast<int>(index)));
  }
  load.sample_count += static_cast<std::int64_t>((end - first) * writer.series.size());
}

// Its steps fill the hour and go on counting from the hour before.
void FillHour(TickTable& table, int hour) {
  const std::int64_t begin_us = table.times_us.front();
  const auto span = static_cast<double>(table.times_us.back() - begin_us);
  for (std::int64_t& time_us : table.times_us) {
    time_us = begin_us + static_cast<std::int64_t>(static_cast<double>(time_us - begin_us) / span *
                                                   3599.95 * 1e6);
  }
  const auto steps = static_cast<std::int32_t>(table.times_us.size());
  for (std::int32_t& batch : table.batches) batch += hour * steps;
}

// As MachineHour orders them.
std::vector<RivalSeries> MachineSeries() {
  std::vector<RivalSeries> series;
  const std::vector<testing::MetricKind> kinds = testing::MetricKinds(1);
  for (int copy = 0; copy < 8; ++copy) {
    for (const testing::MetricKind& kind : kinds) {
      if (copy >= SeriesOf(kind.name)) continue;
      const bool is_many = SeriesOf(kind.name) > 1;
      series.push_back({is_many ? "gpu" : "machine", kind.name, is_many ? absl::StrCat(copy) : ""});
    }
  }
  return series;
}

std::vector<RivalSeries> RankSeries() {
  std::vector<RivalSeries> series;
  for (int i = 0; i < kDayTimings; ++i) series.push_back({"timing", absl::StrCat("scope_", i), ""});
  return series;
}

// A seed for each hour of each writer.
std::uint64_t SeedOf(int hour, int writer) {
  return static_cast<std::uint64_t>(hour + 1) * 1000 + static_cast<std::uint64_t>(writer);
}

TickTable MachineTicks(int hour, int writer) {
  TickTable table = MachineHour(SeedOf(hour, writer), kLoadStartUs + hour * kHourUs);
  for (std::int32_t& batch : table.batches) batch += hour * 28'800;
  return table;
}

}  // namespace

std::vector<v1::Definition> DefinitionsOf(const std::vector<RivalSeries>& series) {
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

RivalLoad MakeDay(int hour, int hours) {
  RivalLoad load;
  for (int machine = 0; machine < kDayMachines; ++machine)
    load.writers.push_back({-1 - machine, machine, MachineSeries(), {}, {}});
  load.writers.push_back({0, kDayMachines, RankSeries(), {}, {}});
  for (int at = hour; at < hour + hours; ++at) {
    for (int machine = 0; machine < kDayMachines; ++machine) {
      const TickTable table = MachineTicks(at, machine);
      AddTicks(table, 0, table.times_us.size(), static_cast<std::size_t>(machine), load);
    }
    TickTable steps = RankHour(SeedOf(at, kDayMachines), kLoadStartUs + at * kHourUs);
    FillHour(steps, at);
    AddTicks(steps, 0, steps.times_us.size(), kDayMachines, load);
  }
  load.end_us = kLoadStartUs + (hour + hours) * kHourUs;
  return load;
}

RivalLoad MakeWide(int minute, int minutes) {
  RivalLoad load;
  for (int machine = 0; machine < kWideMachines; ++machine) {
    load.writers.push_back({-1 - machine, machine, MachineSeries(), {}, {}});
    for (int i = 0; i < kWideRanksPerMachine; ++i)
      load.writers.push_back({machine * kWideRanksPerMachine + i, machine, RankSeries(), {}, {}});
  }
  const std::int64_t start_us = kLoadStartUs + minute * kMinuteUs;
  for (std::size_t index = 0; index < load.writers.size(); ++index) {
    const bool is_rank = load.writers[index].rank >= 0;
    const int seed = static_cast<int>(index);
    TickTable table = is_rank ? RankHour(SeedOf(minute, seed), start_us)
                              : MachineHour(SeedOf(minute, seed), start_us);
    const auto ticks = static_cast<std::size_t>((is_rank ? 600 : 60) * minutes);
    table.times_us.resize(ticks);
    table.batches.resize(ticks);
    for (std::size_t tick = 0; tick < ticks; ++tick) {
      const auto number = static_cast<std::int64_t>(tick);
      if (is_rank) table.times_us[tick] = start_us + number * 100'000 + (number * 7919) % 1000;
      table.batches[tick] =
          static_cast<std::int32_t>(minute * 600 + (is_rank ? number : number * 10));
    }
    AddTicks(table, 0, ticks, index, load);
  }
  load.end_us = start_us + minutes * kMinuteUs;
  return load;
}

}  // namespace stepwell::bench
