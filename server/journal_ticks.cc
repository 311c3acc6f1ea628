#include "server/journal_ticks.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "server/limits.h"
#include "server/varint.h"
#include "storage/encoded_vector.h"
#include "storage/integer_shape.h"

namespace stepwell {
namespace {

static_assert(std::endian::native == std::endian::little, "values are written as they lie");

constexpr unsigned kPresence = 16;
constexpr unsigned kRaw = 32;
constexpr unsigned kWidthMax = 8;
enum Neighbours : std::uint64_t { kAllAlike = 0, kEach = 1 };

// Times and batches may lie so far apart that the difference wraps; it wraps back.
template <typename Number>
std::int64_t Difference(const std::vector<Number>& numbers, std::size_t index) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(numbers[index]) -
                                   static_cast<std::uint64_t>(numbers[index - 1]));
}

template <typename Number>
char* PutNeighbours(const std::vector<Number>& numbers, char* to) {
  to = PutVarint(ZigZag(numbers.front()), to);
  const std::int64_t step = numbers.size() < 2 ? 0 : Difference(numbers, 1);
  bool alike = true;
  for (std::size_t i = 2; alike && i < numbers.size(); ++i) alike = Difference(numbers, i) == step;
  to = PutVarint(alike ? kAllAlike : kEach, to);
  if (alike) return PutVarint(ZigZag(step), to);
  for (std::size_t i = 1; i < numbers.size(); ++i)
    to = PutVarint(ZigZag(Difference(numbers, i)), to);
  return to;
}

template <typename Number>
bool ReadNeighbours(VarintReader& reader, std::size_t count, std::vector<Number>& out) {
  std::uint64_t number = static_cast<std::uint64_t>(UnZigZag(reader.Varint()));
  const bool each = reader.Varint(kEach) == kEach;
  std::uint64_t step = each ? 0 : static_cast<std::uint64_t>(UnZigZag(reader.Varint()));
  out.reserve(count);
  for (std::size_t i = 0; i < count && !reader.failed(); ++i) {
    if (i > 0) {
      if (each) step = static_cast<std::uint64_t>(UnZigZag(reader.Varint()));
      number += step;
    }
    const auto wide = static_cast<std::int64_t>(number);
    if (wide < std::numeric_limits<Number>::min() || wide > std::numeric_limits<Number>::max()) {
      reader.Fail();
    }
    out.push_back(static_cast<Number>(wide));
  }
  return !reader.failed();
}

std::size_t PresenceBytes(std::size_t tick_count) { return (tick_count + 7) / 8; }

// A presence of 0 and 1 bytes as bits.
char* PutPresence(const std::vector<std::uint8_t>& presence, char* to) {
  std::memset(to, 0, PresenceBytes(presence.size()));
  for (std::size_t i = 0; i < presence.size(); ++i) {
    const unsigned bit = static_cast<unsigned>(presence[i]) << (i % 8);
    to[i / 8] = static_cast<char>(static_cast<unsigned char>(to[i / 8]) | bit);
  }
  return to + PresenceBytes(presence.size());
}

// How many ticks have a sample. An explicit presence of all is one too: what was given comes back.
std::size_t ReadPresence(VarintReader& reader, std::size_t tick_count,
                         std::vector<std::uint8_t>& out) {
  const absl::string_view bits = reader.Bytes(PresenceBytes(tick_count));
  if (reader.failed()) return 0;
  out.resize(tick_count);
  std::size_t count = 0;
  for (std::size_t i = 0; i < tick_count; ++i) {
    out[i] = static_cast<std::uint8_t>((static_cast<unsigned char>(bits[i / 8]) >> (i % 8)) & 1);
    count += out[i];
  }
  return count;
}

// All eight bytes of each, where the next one writes over those beyond the width: one store, however wide they
// are. REQUIRES: room for eight bytes each.
char* PutAbove(const std::vector<std::int64_t>& integers, std::int64_t least, std::size_t width,
               char* to) {
  if (width == 0) return to;
  for (const std::int64_t integer : integers) {
    const std::uint64_t above =
        static_cast<std::uint64_t>(integer) - static_cast<std::uint64_t>(least);
    std::memcpy(to, &above, sizeof(above));
    to += width;
  }
  return to;
}

char* PutColumn(const TickColumn& column, ScaledValues& scaled, char* to) {
  to = PutVarint(static_cast<std::uint64_t>(Value(column.series_no)), to);
  const unsigned presence = column.presence.empty() ? 0 : kPresence;
  std::int64_t least = 0;
  std::size_t width = kWidthMax;
  if (!column.values.empty() && ScaleValues(column.values, scaled)) {
    const IntegerTotals totals = TotalsOf(scaled.integers);
    least = totals.min;
    width = static_cast<std::size_t>(
        (BitWidth(static_cast<std::uint64_t>(totals.max) - static_cast<std::uint64_t>(least)) + 7) /
        8);
  }
  const bool raw = width == kWidthMax;
  to = PutVarint(width | presence | (raw ? kRaw : 0), to);
  if (presence != 0) to = PutPresence(column.presence, to);
  if (raw) {
    const std::size_t bytes = column.values.size() * sizeof(double);
    if (bytes > 0) std::memcpy(to, column.values.data(), bytes);
    return to + bytes;
  }
  to = PutVarint(ZigZag(scaled.divisor_exponent), to);
  to = PutVarint(ZigZag(least), to);
  return PutAbove(scaled.integers, least, width, to);
}

// What a table takes at most.
std::size_t BytesMax(const TickTable& table) {
  // Group and counts; of times and batches the first, how, and the differences.
  std::size_t bytes = (7 + 2 * table.times_us.size()) * kVarintBytesMax;
  for (const TickColumn& column : table.columns) {
    bytes += 4 * kVarintBytesMax + PresenceBytes(column.presence.size()) +
             column.values.size() * sizeof(double);
  }
  return bytes;
}

std::vector<double> ReadRaw(VarintReader& reader, std::size_t count) {
  const absl::string_view bytes = reader.Bytes(count * sizeof(double));
  std::vector<double> values(bytes.size() / sizeof(double));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<double> ReadScaled(VarintReader& reader, std::size_t count, std::size_t width) {
  const std::int64_t exponent = UnZigZag(reader.Varint());
  const auto least = static_cast<std::uint64_t>(UnZigZag(reader.Varint()));
  const absl::string_view bytes = reader.Bytes(count * width);
  if (exponent < -kBinaryExponentMax || exponent > kDecimalExponentMax) reader.Fail();
  if (reader.failed()) return {};
  const double divisor = Divisor(static_cast<std::int16_t>(exponent));
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t above = 0;
    std::memcpy(&above, bytes.data() + i * width, width);
    values[i] = static_cast<double>(static_cast<std::int64_t>(least + above)) / divisor;
  }
  return values;
}

bool ReadColumn(VarintReader& reader, std::size_t tick_count, TickColumn& out) {
  out.series_no = static_cast<SeriesNo>(
      reader.Varint(static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())));
  const std::uint64_t form = reader.Varint(kRaw | kPresence | kWidthMax);
  const std::size_t width = form & 15U;
  const bool raw = (form & kRaw) != 0;
  if (width > kWidthMax || raw != (width == kWidthMax)) return false;
  const std::size_t count =
      (form & kPresence) == 0 ? tick_count : ReadPresence(reader, tick_count, out.presence);
  if (reader.failed()) return false;
  out.values = raw ? ReadRaw(reader, count) : ReadScaled(reader, count, width);
  return !reader.failed();
}

bool ReadTable(VarintReader& reader, std::uint64_t& ticks_left, DecodedChunk& out) {
  TickTable& table = out.tables.emplace_back();
  table.tick_group =
      static_cast<std::uint32_t>(reader.Varint(std::numeric_limits<std::uint32_t>::max()));
  const std::uint64_t tick_count = reader.Varint(ticks_left);
  if (tick_count == 0) return false;
  ticks_left -= tick_count;
  if (!ReadNeighbours(reader, tick_count, table.times_us)) return false;
  if (!ReadNeighbours(reader, tick_count, table.batches)) return false;
  const std::uint64_t column_count = reader.Count(2);
  for (std::uint64_t c = 0; c < column_count; ++c) {
    TickColumn& column = table.columns.emplace_back();
    if (!ReadColumn(reader, tick_count, column)) return false;
    out.Count(column);
    if (out.sample_count > kChunkSamplesMax) return false;
  }
  out.Count(table);
  return !reader.failed();
}

}  // namespace

void AppendJournalTicks(absl::Span<const TickTable> tables, std::string& body,
                        ScaledValues& scaled) {
  std::size_t bytes_max = 0;
  for (const TickTable& table : tables) bytes_max += BytesMax(table);
  const std::size_t start = body.size();
  body.resize(start + bytes_max);
  char* to = body.data() + start;
  for (const TickTable& table : tables) {
    to = PutVarint(table.tick_group, to);
    to = PutVarint(table.times_us.size(), to);
    to = PutNeighbours(table.times_us, to);
    to = PutNeighbours(table.batches, to);
    to = PutVarint(table.columns.size(), to);
    for (const TickColumn& column : table.columns) to = PutColumn(column, scaled, to);
  }
  body.resize(static_cast<std::size_t>(to - body.data()));
}

bool DecodeJournalTicks(absl::string_view body, DecodedChunk& out) {
  VarintReader reader(body);
  std::uint64_t ticks_left = kChunkSamplesMax;
  while (!reader.done()) {
    if (!ReadTable(reader, ticks_left, out)) return false;
  }
  return !reader.failed();
}

}  // namespace stepwell
