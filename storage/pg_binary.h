// PgBinary: values in PostgreSQL's binary send/receive form, shared by statement parameters
// (pg_connection.h), COPY rows (pg_copy.h) and results (pg_result.h). Integers are big-endian;
// times count microseconds and days from 2000-01-01. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/uuid.h"

namespace stepwell {

// Object ids of built-in types; fixed by PostgreSQL's catalogue (pg_type.dat) for ever.
enum class PgOid : std::uint32_t {
  kUnknown = 0,
  kBool = 16,
  kBytea = 17,
  kChar = 18,
  kName = 19,
  kInt8 = 20,
  kInt2 = 21,
  kInt4 = 23,
  kText = 25,
  kOid = 26,
  kJson = 114,
  kFloat4 = 700,
  kFloat8 = 701,
  kByteaArray = 1001,
  kInt2Array = 1005,
  kInt4Array = 1007,
  kTextArray = 1009,
  kInt8Array = 1016,
  kFloat8Array = 1022,
  kVarchar = 1043,
  kDate = 1082,
  kTimestamptz = 1184,
  kTimestamptzArray = 1185,
  kBit = 1560,
  kVarbit = 1562,
  kUuid = 2950,
  kUuidArray = 2951,
  kJsonb = 3802,
};

// Microseconds from 1970 to 2000, and days.
inline constexpr std::int64_t kPgEpochUs = 946684800000000;
inline constexpr std::int32_t kPgEpochDays = 10957;

// Values whose C++ type alone does not name the SQL type.
struct PgTimestamp {
  std::int64_t unix_us;  // Outside timestamptz' range PostgreSQL answers 22008, kInvalidArgument.
};
struct PgDate {
  std::int32_t unix_days;
};
struct PgBytes {
  std::string_view bytes;
};
struct PgJsonb {
  std::string_view text;
};
// `bits` holds (bit_count + 7) / 8 bytes, most significant bit first. PostgreSQL clears the
// unused low bits of the last byte.
struct PgBits {
  std::string_view bits;
  std::int32_t bit_count;
};

namespace pg_binary {

// Each appends the value alone, without a length.
void AppendInt16(std::int16_t value, std::string& out);
void AppendInt32(std::int32_t value, std::string& out);
void AppendInt64(std::int64_t value, std::string& out);
// The bits of the double as they are: NaN payloads, -0 and denormals survive.
void AppendFloat64(double value, std::string& out);
void AppendTimestamp(PgTimestamp value, std::string& out);
void AppendDate(PgDate value, std::string& out);
void AppendBits(PgBits value, std::string& out);
void AppendJsonb(PgJsonb value, std::string& out);
void AppendUuid(const Uuid& value, std::string& out);

// One-dimensional arrays with lower bound 1; empty is PostgreSQL's '{}'.
void AppendArray(std::span<const std::int64_t> values, std::string& out);
void AppendArray(std::span<const std::int32_t> values, std::string& out);
void AppendArray(std::span<const std::int16_t> values, std::string& out);
void AppendArray(std::span<const double> values, std::string& out);
void AppendArray(std::span<const Uuid> values, std::string& out);
// text[] or bytea[], told by `element`.
void AppendArray(PgOid element, std::span<const std::string> values, std::string& out);

std::int16_t ReadInt16(const char* at);
std::int32_t ReadInt32(const char* at);
std::int64_t ReadInt64(const char* at);
double ReadFloat64(const char* at);

}  // namespace pg_binary
}  // namespace stepwell
