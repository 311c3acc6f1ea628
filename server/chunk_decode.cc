#include "server/chunk_decode.h"

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "server/limits.h"

namespace stepwell {
namespace {

// Where in a body, in words only once there is something to complain about.
struct Place {
  int table = 0;
  int column = -1;  // below 0 = the table as a whole

  std::string Text() const {
    return column < 0 ? absl::StrCat("tables[", table, "]")
                      : absl::StrCat("tables[", table, "].columns[", column, "]");
  }
};

MaybeComplaint DecodeTimes(const pb::Table& table, const Place& place, TickTable& out) {
  const auto complaint = [&](int tick) {
    return Invalid("TIME_RANGE", absl::StrCat(place.Text(), ": the time of tick ", tick,
                                              " lies outside of what timestamptz holds, 4713 BC to"
                                              " 294247 AD"));
  };
  std::int64_t time_us = table.first_time_us();
  if (time_us < kTimeUsMin) return complaint(0);
  out.times_us.reserve(static_cast<std::size_t>(table.time_deltas_us_size()) + 1);
  out.times_us.push_back(time_us);
  for (const std::int64_t delta : table.time_deltas_us()) {
    if (__builtin_add_overflow(time_us, delta, &time_us) || time_us < kTimeUsMin) {
      return complaint(static_cast<int>(out.times_us.size()));
    }
    out.times_us.push_back(time_us);
  }
  return std::nullopt;
}

MaybeComplaint DecodeBatches(const pb::Table& table, const Place& place, TickTable& out) {
  const std::size_t tick_count = out.times_us.size();
  if (table.first_batch() < -1) {
    return Invalid("BATCH_RANGE",
                   absl::StrCat(place.Text(), ".first_batch is ", table.first_batch(),
                                ", allowed are -1 (none) and 0 to 2147483647"));
  }
  if (table.batch_deltas_size() == 0) {
    out.batches.assign(tick_count, table.first_batch());
    return std::nullopt;
  }
  if (static_cast<std::size_t>(table.batch_deltas_size()) != tick_count - 1) {
    return Invalid(
        "BATCH_COUNT",
        absl::StrCat(place.Text(), ".batch_deltas has ", table.batch_deltas_size(), " entries for ",
                     tick_count, " ticks, allowed are 0 and ", tick_count - 1));
  }
  std::int64_t batch = table.first_batch();
  out.batches.reserve(tick_count);
  out.batches.push_back(table.first_batch());
  for (const std::int32_t delta : table.batch_deltas()) {
    batch += delta;
    if (batch < -1 || batch > std::numeric_limits<std::int32_t>::max()) {
      return Invalid("BATCH_RANGE", absl::StrCat(place.Text(), ".batch_deltas make batch ", batch,
                                                 " at tick ", out.batches.size(),
                                                 ", allowed are -1 (none) and 0 to 2147483647"));
    }
    out.batches.push_back(static_cast<std::int32_t>(batch));
  }
  return std::nullopt;
}

// Expands the presence bits; returns how many are set.
std::size_t DecodePresence(const std::string& bits, std::size_t tick_count, TickColumn& out) {
  std::size_t present_count = 0;
  out.presence.resize(tick_count);
  for (std::size_t tick = 0; tick < tick_count; ++tick) {
    const auto byte = static_cast<unsigned char>(bits[tick / 8]);
    out.presence[tick] = static_cast<std::uint8_t>((byte >> (tick % 8)) & 1);
    present_count += out.presence[tick];
  }
  // Columns where nothing is missing have one form only.
  if (present_count == tick_count) out.presence.clear();
  return present_count;
}

MaybeComplaint DecodeColumn(const pb::Column& column, const Place& place, std::size_t tick_count,
                            std::uint64_t divisor, TickColumn& out) {
  if (column.doubles_size() > 0 && column.integers_size() > 0) {
    return Invalid(
        "COLUMN_FORM",
        absl::StrCat(place.Text(), " has both doubles and integers, allowed is one of them"));
  }
  std::size_t present_count = tick_count;
  if (!column.presence().empty()) {
    if (column.presence().size() != (tick_count + 7) / 8) {
      return Invalid(
          "PRESENCE_BYTES",
          absl::StrCat(place.Text(), ".presence has ", column.presence().size(), " bytes for ",
                       tick_count, " ticks, allowed are 0 and ", (tick_count + 7) / 8));
    }
    present_count = DecodePresence(column.presence(), tick_count, out);
  }
  const auto value_count = static_cast<std::size_t>(column.doubles_size()) +
                           static_cast<std::size_t>(column.integers_size());
  if (value_count != present_count) {
    return Invalid("VALUE_COUNT", absl::StrCat(place.Text(), " has ", value_count, " values where ",
                                               present_count, " ticks have a sample"));
  }
  if (column.integers_size() == 0) {
    out.values.assign(column.doubles().begin(), column.doubles().end());
    return std::nullopt;
  }
  out.values.reserve(value_count);
  const auto by = static_cast<double>(divisor);  // exact: 10^15 < 2^53, or a power of two
  for (const std::int64_t integer : column.integers()) {
    out.values.push_back(divisor == 1 ? static_cast<double>(integer)
                                      : static_cast<double>(integer) / by);
  }
  return std::nullopt;
}

}  // namespace

bool IsDivisor(std::uint64_t divisor) {
  if (divisor != 0 && (divisor & (divisor - 1)) == 0) return divisor <= (std::uint64_t{1} << 62);
  for (std::uint64_t power = 1; power <= 1'000'000'000'000'000; power *= 10) {
    if (divisor == power) return true;
  }
  return false;
}

void DecodedChunk::Count(const TickColumn& column) {
  sample_count += static_cast<std::int64_t>(column.values.size());
  bytes += static_cast<std::int64_t>(column.values.size() * sizeof(double) +
                                     column.presence.size() + sizeof(TickColumn));
}

void DecodedChunk::Count(const TickTable& table) {
  bytes += static_cast<std::int64_t>(
      table.times_us.size() * (sizeof(std::int64_t) + sizeof(std::int32_t)) + sizeof(TickTable));
}

MaybeComplaint DecodeChunk(const pb::ChunkBody& body, absl::Span<const TableTarget> targets,
                           DecodedChunk& out) {
  STEPWELL_CHECK(static_cast<std::size_t>(body.tables_size()) == targets.size());
  out.tables.reserve(targets.size());
  for (int t = 0; t < body.tables_size(); ++t) {
    const pb::Table& table = body.tables(t);
    const TableTarget& target = targets[static_cast<std::size_t>(t)];
    STEPWELL_CHECK(static_cast<std::size_t>(table.columns_size()) == target.columns.size());
    const Place place{.table = t};
    TickTable ticks;
    ticks.tick_group = target.tick_group;
    STEPWELL_RETURN_IF_COMPLAINT(DecodeTimes(table, place, ticks));
    STEPWELL_RETURN_IF_COMPLAINT(DecodeBatches(table, place, ticks));
    const std::size_t tick_count = ticks.times_us.size();
    ticks.columns.reserve(target.columns.size());
    for (int c = 0; c < table.columns_size(); ++c) {
      const ColumnTarget& to = target.columns[static_cast<std::size_t>(c)];
      TickColumn column;
      column.series_no = to.series_no;
      STEPWELL_RETURN_IF_COMPLAINT(DecodeColumn(table.columns(c), {.table = t, .column = c},
                                                tick_count, to.divisor, column));
      if (Value(to.series_no) == 0) {
        out.dropped_count += static_cast<std::int64_t>(column.values.size());
        continue;
      }
      // A column of misses only says nothing that its absence does not.
      if (column.values.empty()) continue;
      out.Count(column);
      ticks.columns.push_back(std::move(column));
    }
    if (ticks.columns.empty()) continue;
    out.Count(ticks);
    out.tables.push_back(std::move(ticks));
  }
  return std::nullopt;
}

}  // namespace stepwell
