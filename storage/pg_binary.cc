#include "storage/pg_binary.h"

#include <bit>
#include <concepts>
#include <limits>

#include "base/check.h"

namespace stepwell::pg_binary {
namespace {

template <std::unsigned_integral T>
void AppendBigEndian(T value, std::string& out) {
  char bytes[sizeof(T)];
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    bytes[i] = static_cast<char>(value >> (8 * (sizeof(T) - 1 - i)));
  }
  out.append(bytes, sizeof(T));
}

template <std::unsigned_integral T>
T ReadBigEndian(const char* at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<T>(value << 8 | static_cast<unsigned char>(at[i]));
  }
  return value;
}

// dimensions, has-null flag, element type, then length and lower bound.
void AppendArrayHead(PgOid element, std::size_t count, std::string& out) {
  STEPWELL_CHECK(count <= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()));
  AppendInt32(count == 0 ? 0 : 1, out);
  AppendInt32(0, out);
  AppendInt32(static_cast<std::int32_t>(element), out);
  if (count == 0) return;
  AppendInt32(static_cast<std::int32_t>(count), out);
  AppendInt32(1, out);
}

template <typename T, typename Append>
void AppendFixedArray(PgOid element, std::int32_t element_bytes, std::span<const T> values,
                      Append append, std::string& out) {
  out.reserve(out.size() + 20 + values.size() * (4 + element_bytes));
  AppendArrayHead(element, values.size(), out);
  for (const T& value : values) {
    AppendInt32(element_bytes, out);
    append(value, out);
  }
}

}  // namespace

void AppendInt16(std::int16_t value, std::string& out) {
  AppendBigEndian(static_cast<std::uint16_t>(value), out);
}
void AppendInt32(std::int32_t value, std::string& out) {
  AppendBigEndian(static_cast<std::uint32_t>(value), out);
}
void AppendInt64(std::int64_t value, std::string& out) {
  AppendBigEndian(static_cast<std::uint64_t>(value), out);
}
void AppendFloat64(double value, std::string& out) {
  AppendBigEndian(std::bit_cast<std::uint64_t>(value), out);
}

void AppendTimestamp(PgTimestamp value, std::string& out) {
  // INT64_MIN means -infinity on the wire; one above it is out of range, and answered as such.
  constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min() + 1;
  AppendInt64(value.unix_us < kLowest + kPgEpochUs ? kLowest : value.unix_us - kPgEpochUs, out);
}

void AppendDate(PgDate value, std::string& out) {
  constexpr std::int32_t kLowest = std::numeric_limits<std::int32_t>::min() + 1;
  AppendInt32(value.unix_days < kLowest + kPgEpochDays ? kLowest : value.unix_days - kPgEpochDays,
              out);
}

void AppendBits(PgBits value, std::string& out) {
  STEPWELL_CHECK(value.bit_count >= 0);
  const std::size_t bytes = (static_cast<std::size_t>(value.bit_count) + 7) / 8;
  STEPWELL_CHECK(value.bits.size() >= bytes);
  AppendInt32(value.bit_count, out);
  out.append(value.bits.substr(0, bytes));
}

void AppendJsonb(PgJsonb value, std::string& out) {
  out.push_back(1);  // jsonb's send version, the only one there is
  out.append(value.text);
}

void AppendUuid(const Uuid& value, std::string& out) {
  out.append(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
}

void AppendArray(std::span<const std::int64_t> values, std::string& out) {
  AppendFixedArray(PgOid::kInt8, 8, values, AppendInt64, out);
}
void AppendArray(std::span<const std::int32_t> values, std::string& out) {
  AppendFixedArray(PgOid::kInt4, 4, values, AppendInt32, out);
}
void AppendArray(std::span<const std::int16_t> values, std::string& out) {
  AppendFixedArray(PgOid::kInt2, 2, values, AppendInt16, out);
}
void AppendArray(std::span<const double> values, std::string& out) {
  AppendFixedArray(PgOid::kFloat8, 8, values, AppendFloat64, out);
}
void AppendArray(std::span<const Uuid> values, std::string& out) {
  AppendFixedArray(PgOid::kUuid, 16, values, AppendUuid, out);
}

void AppendArray(PgOid element, std::span<const std::string> values, std::string& out) {
  STEPWELL_CHECK(element == PgOid::kText || element == PgOid::kBytea);
  AppendArrayHead(element, values.size(), out);
  for (const std::string& value : values) {
    STEPWELL_CHECK(value.size() <= static_cast<std::size_t>(1) << 30);
    AppendInt32(static_cast<std::int32_t>(value.size()), out);
    out.append(value);
  }
}

std::int16_t ReadInt16(const char* at) {
  return static_cast<std::int16_t>(ReadBigEndian<std::uint16_t>(at));
}
std::int32_t ReadInt32(const char* at) {
  return static_cast<std::int32_t>(ReadBigEndian<std::uint32_t>(at));
}
std::int64_t ReadInt64(const char* at) {
  return static_cast<std::int64_t>(ReadBigEndian<std::uint64_t>(at));
}
double ReadFloat64(const char* at) {
  return std::bit_cast<double>(ReadBigEndian<std::uint64_t>(at));
}

}  // namespace stepwell::pg_binary
