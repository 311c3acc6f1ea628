#include "bench/load/tick_load.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "bench/store/day_tables.h"

namespace stepwell::bench {
namespace {

constexpr std::int64_t kMinuteUs = 60'000'000;
constexpr int kWideRanksPerMachine = 8;

void AddTicks(const TickRange& ticks, std::size_t index, const SeeTicks& see, TickLoad& load) {
  TickWriter& writer = load.writers[index];
  const std::size_t ticks_per_chunk = kChunkSamples / writer.series.size();
  for (std::size_t at = ticks.first; at < ticks.end; at += ticks_per_chunk) {
    writer.bodies.push_back(BodyOf({ticks.table, at, std::min(at + ticks_per_chunk, ticks.end)}));
  }
  if (see != nullptr) see(ticks, writer.series, index);
  load.sample_count += static_cast<std::int64_t>((ticks.end - ticks.first) * writer.series.size());
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
std::vector<LoadSeries> MachineSeries() {
  std::vector<LoadSeries> series;
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

std::vector<LoadSeries> RankSeries() {
  std::vector<LoadSeries> series;
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

SealedBody BodyOf(const TickRange& ticks) {
  const TickTable& from = ticks.table;
  v1::ChunkBody body;
  auto* table = body.add_tables();
  table->set_tick_group(1);
  table->set_first_time_us(from.times_us[ticks.first]);
  table->set_first_batch(from.batches[ticks.first]);
  for (std::size_t i = ticks.first + 1; i < ticks.end; ++i) {
    table->add_time_deltas_us(from.times_us[i] - from.times_us[i - 1]);
    table->add_batch_deltas(from.batches[i] - from.batches[i - 1]);
  }
  for (std::size_t i = 0; i < from.columns.size(); ++i) {
    auto* column = table->add_columns();
    column->set_ref(static_cast<std::uint32_t>(i + 1));
    const auto begin = from.columns[i].values.begin();
    column->mutable_doubles()->Add(begin + static_cast<std::ptrdiff_t>(ticks.first),
                                   begin + static_cast<std::ptrdiff_t>(ticks.end));
  }
  return {body.SerializeAsString(), from.times_us[ticks.end - 1]};
}

std::vector<v1::Definition> DefinitionsOf(const std::vector<LoadSeries>& series) {
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

TickLoad MakeDay(int hour, int hours, const SeeTicks& see) {
  TickLoad load;
  for (int machine = 0; machine < kDayMachines; ++machine)
    load.writers.push_back({-1 - machine, machine, MachineSeries(), {}});
  load.writers.push_back({0, kDayMachines, RankSeries(), {}});
  for (int at = hour; at < hour + hours; ++at) {
    for (int machine = 0; machine < kDayMachines; ++machine) {
      const TickTable table = MachineTicks(at, machine);
      AddTicks({table, 0, table.times_us.size()}, static_cast<std::size_t>(machine), see, load);
    }
    TickTable steps = RankHour(SeedOf(at, kDayMachines), kLoadStartUs + at * kHourUs);
    FillHour(steps, at);
    AddTicks({steps, 0, steps.times_us.size()}, kDayMachines, see, load);
  }
  load.end_us = kLoadStartUs + (hour + hours) * kHourUs;
  return load;
}

TickLoad MakeWide(int minute, int minutes, const SeeTicks& see, int machines) {
  TickLoad load;
  for (int machine = 0; machine < machines; ++machine) {
    load.writers.push_back({-1 - machine, machine, MachineSeries(), {}});
    for (int i = 0; i < kWideRanksPerMachine; ++i)
      load.writers.push_back({machine * kWideRanksPerMachine + i, machine, RankSeries(), {}});
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
    AddTicks({table, 0, ticks}, index, see, load);
  }
  load.end_us = start_us + minutes * kMinuteUs;
  return load;
}

}  // namespace stepwell::bench
