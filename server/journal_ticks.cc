#include "server/journal_ticks.h"

#include <algorithm>
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
#include "storage/value_scale.h"

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
void AppendNeighbours(const std::vector<Number>& numbers, std::string& out) {
  AppendVarint(ZigZag(numbers.front()), out);
  const std::int64_t step = numbers.size() < 2 ? 0 : Difference(numbers, 1);
  bool alike = true;
  for (std::size_t i = 2; alike && i < numbers.size(); ++i) alike = Difference(numbers, i) == step;
  AppendVarint(alike ? kAllAlike : kEach, out);
  if (alike) return AppendVarint(ZigZag(step), out);
  for (std::size_t i = 1; i < numbers.size(); ++i)
    AppendVarint(ZigZag(Difference(numbers, i)), out);
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

// A presence of 0 and 1 bytes as bits.
void AppendPresence(const std::vector<std::uint8_t>& presence, std::string& out) {
  const std::size_t start = out.size();
  out.resize(start + (presence.size() + 7) / 8, '\0');
  for (std::size_t i = 0; i < presence.size(); ++i) {
    const unsigned bit = static_cast<unsigned>(presence[i]) << (i % 8);
    char& byte = out[start + i / 8];
    byte = static_cast<char>(static_cast<unsigned char>(byte) | bit);
  }
}

// How many ticks have a sample. An explicit presence of all is one too: what was given comes back.
std::size_t ReadPresence(VarintReader& reader, std::size_t tick_count,
                         std::vector<std::uint8_t>& out) {
  const absl::string_view bits = reader.Bytes((tick_count + 7) / 8);
  if (reader.failed()) return 0;
  out.resize(tick_count);
  std::size_t count = 0;
  for (std::size_t i = 0; i < tick_count; ++i) {
    out[i] = static_cast<std::uint8_t>((static_cast<unsigned char>(bits[i / 8]) >> (i % 8)) & 1);
    count += out[i];
  }
  return count;
}

template <std::size_t kWidth>
void StoreAbove(const std::vector<std::int64_t>& integers, std::int64_t least, char* to) {
  for (const std::int64_t integer : integers) {
    const std::uint64_t above =
        static_cast<std::uint64_t>(integer) - static_cast<std::uint64_t>(least);
    std::memcpy(to, &above, kWidth);
    to += kWidth;
  }
}

void AppendAbove(const std::vector<std::int64_t>& integers, std::int64_t least, std::size_t width,
                 std::string& out) {
  const std::size_t start = out.size();
  out.resize(start + integers.size() * width);
  char* to = out.data() + start;
  switch (width) {
    case 1:
      return StoreAbove<1>(integers, least, to);
    case 2:
      return StoreAbove<2>(integers, least, to);
    case 3:
      return StoreAbove<3>(integers, least, to);
    case 4:
      return StoreAbove<4>(integers, least, to);
    case 5:
      return StoreAbove<5>(integers, least, to);
    case 6:
      return StoreAbove<6>(integers, least, to);
    case 7:
      return StoreAbove<7>(integers, least, to);
  }
}

void AppendColumn(const TickColumn& column, ScaledValues& scratch, std::string& out) {
  AppendVarint(static_cast<std::uint64_t>(Value(column.series_no)), out);
  const unsigned presence = column.presence.empty() ? 0 : kPresence;
  std::int64_t least = 0;
  std::size_t width = kWidthMax;
  if (!column.values.empty() && ScaleValues(column.values, scratch)) {
    least = scratch.integers.front();
    std::int64_t greatest = least;
    for (const std::int64_t integer : scratch.integers) {
      least = std::min(least, integer);
      greatest = std::max(greatest, integer);
    }
    width = static_cast<std::size_t>(
        (BitWidth(static_cast<std::uint64_t>(greatest) - static_cast<std::uint64_t>(least)) + 7) /
        8);
  }
  const bool raw = width == kWidthMax;
  AppendVarint(width | presence | (raw ? kRaw : 0), out);
  if (presence != 0) AppendPresence(column.presence, out);
  if (raw) {
    if (column.values.empty()) return;
    const std::size_t start = out.size();
    out.resize(start + column.values.size() * sizeof(double));
    std::memcpy(out.data() + start, column.values.data(), column.values.size() * sizeof(double));
    return;
  }
  AppendVarint(ZigZag(scratch.divisor_exponent), out);
  AppendVarint(ZigZag(least), out);
  AppendAbove(scratch.integers, least, width, out);
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

void AppendJournalTicks(absl::Span<const TickTable> tables, std::string& body) {
  ScaledValues scratch;
  for (const TickTable& table : tables) {
    AppendVarint(table.tick_group, body);
    AppendVarint(table.times_us.size(), body);
    AppendNeighbours(table.times_us, body);
    AppendNeighbours(table.batches, body);
    AppendVarint(table.columns.size(), body);
    for (const TickColumn& column : table.columns) AppendColumn(column, scratch, body);
  }
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
