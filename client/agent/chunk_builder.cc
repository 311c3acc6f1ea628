#include "client/agent/chunk_builder.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/check.h"

namespace stepwell::agent {
namespace {

// Whole numbers up to here keep their value as doubles.
constexpr double kExactMax = 9007199254740992.0;

std::optional<std::int64_t> ExactInteger(double value, double divisor) {
  const double scaled = std::nearbyint(value * divisor);
  // Also false for NaN and infinities.
  if (!(std::fabs(scaled) <= kExactMax)) return std::nullopt;
  if (scaled / divisor != value || (value == 0 && std::signbit(value))) return std::nullopt;
  return static_cast<std::int64_t>(scaled);
}

}  // namespace

ChunkBuilder::Table& ChunkBuilder::TableOf(std::uint32_t tick_group) {
  const auto [found, is_new] = table_by_group_.try_emplace(tick_group, tables_.size());
  if (is_new) {
    tables_.emplace_back().tick_group = tick_group;
    bytes_estimate_ += 32;
  }
  return tables_[found->second];
}

void ChunkBuilder::AddTick(std::uint32_t tick_group, std::int64_t time_us, std::int32_t batch,
                           std::span<const RefValue> values) {
  Table& table = TableOf(tick_group);
  table.times_us.push_back(time_us);
  table.batches.push_back(batch);
  // A delta of a time and of a batch, as varints at their longest, and a presence bit per column.
  bytes_estimate_ += 10 + 5 + 1 + table.columns.size() / 8;
  for (const RefValue& sample : values) AddValue(table, sample.ref, sample.value);
  span_.Add({values.size(), time_us, time_us});
  if (bytes_estimate_ >= kBodyBytesMax || span_.sample_count >= kBodySamplesMax ||
      tables_.size() >= kBodyTablesMax) {
    CloseBody();
  }
}

void ChunkBuilder::AddSample(std::uint32_t ref, std::int64_t time_us, std::int32_t batch,
                             double value) {
  const RefValue sample{ref, value};
  AddTick(catalog_.definition(ref).tick_group(), time_us, batch, {&sample, 1});
}

void ChunkBuilder::AddValue(Table& table, std::uint32_t ref, double value) {
  const auto [found, is_new] = table.column_by_ref.try_emplace(ref, table.columns.size());
  if (is_new) {
    table.columns.emplace_back().ref = ref;
    bytes_estimate_ += 24 + table.times_us.size() / 8;
  }
  Column& column = table.columns[found->second];
  const auto tick_index = static_cast<std::uint32_t>(table.times_us.size() - 1);
  STEPWELL_CHECK(column.tick_indexes.empty() || column.tick_indexes.back() < tick_index);
  column.values.push_back(value);
  column.tick_indexes.push_back(tick_index);
  bytes_estimate_ += 10;  // a double, or a varint at its longest
}

void ChunkBuilder::AddLoss(const pb::Loss& loss) {
  for (pb::Loss& known : losses_) {
    if (known.cause() != loss.cause() || known.metric_group() != loss.metric_group() ||
        known.ref() != loss.ref() || known.reason() != loss.reason()) {
      continue;
    }
    known.set_sample_count(known.sample_count() + loss.sample_count());
    known.set_first_time_us(std::min(known.first_time_us(), loss.first_time_us()));
    known.set_last_time_us(std::max(known.last_time_us(), loss.last_time_us()));
    return;
  }
  losses_.push_back(loss);
  bytes_estimate_ += loss.ByteSizeLong() + 16;
}

void ChunkBuilder::WriteTicks(const Table& table, pb::Table& out) {
  out.set_tick_group(table.tick_group);
  out.set_first_time_us(table.times_us.front());
  out.set_first_batch(table.batches.front());
  for (std::size_t i = 1; i < table.times_us.size(); ++i) {
    // Unsigned, because a hostile pair of times may differ by more than an int64 holds.
    out.add_time_deltas_us(
        static_cast<std::int64_t>(static_cast<std::uint64_t>(table.times_us[i]) -
                                  static_cast<std::uint64_t>(table.times_us[i - 1])));
  }
  const bool one_batch = std::all_of(table.batches.begin(), table.batches.end(),
                                     [&](std::int32_t b) { return b == table.batches.front(); });
  for (std::size_t i = 1; i < table.batches.size() && !one_batch; ++i) {
    out.add_batch_deltas(
        static_cast<std::int32_t>(static_cast<std::uint32_t>(table.batches[i]) -
                                  static_cast<std::uint32_t>(table.batches[i - 1])));
  }
}

void ChunkBuilder::WriteColumn(const Table& table, const Column& column, pb::Column& out) const {
  out.set_ref(column.ref);
  const std::uint64_t divisor_or_zero = catalog_.definition(column.ref).divisor();
  const auto divisor = static_cast<double>(divisor_or_zero == 0 ? 1 : divisor_or_zero);
  for (const double value : column.values) {
    const std::optional<std::int64_t> integer = ExactInteger(value, divisor);
    if (!integer) {
      out.clear_integers();
      out.mutable_doubles()->Add(column.values.begin(), column.values.end());
      break;
    }
    out.add_integers(*integer);
  }
  if (column.values.size() == table.times_us.size()) return;
  std::string& presence = *out.mutable_presence();
  presence.assign((table.times_us.size() + 7) / 8, '\0');
  for (const std::uint32_t tick : column.tick_indexes) {
    presence[tick / 8] = static_cast<char>(presence[tick / 8] | (1 << (tick % 8)));
  }
}

std::vector<ChunkBuilder::Body> ChunkBuilder::Seal() {
  if (!tables_.empty() || !losses_.empty()) CloseBody();
  return std::exchange(bodies_, {});
}

void ChunkBuilder::CloseBody() {
  pb::ChunkBody message;
  for (const Table& table : tables_) {
    pb::Table& out = *message.add_tables();
    WriteTicks(table, out);
    for (const Column& column : table.columns) WriteColumn(table, column, *out.add_columns());
  }
  for (pb::Loss& loss : losses_) message.add_losses()->Swap(&loss);
  bodies_.push_back({message.SerializeAsString(), span_});
  tables_.clear();
  table_by_group_.clear();
  losses_.clear();
  bytes_estimate_ = 0;
  span_ = SampleSpan();
}

}  // namespace stepwell::agent
