#include "storage/pg_result.h"

#include <libpq-fe.h>

#include <bit>
#include <charconv>
#include <limits>

#include "base/check.h"

namespace stepwell {
namespace {

// Walks a one-dimensional array value: calls `element(bytes)` for each. False where it has more dimensions
// or a NULL: a column may hold that, if somebody put it there.
template <typename Element>
bool WalkArray(std::string_view value, Element element) {
  STEPWELL_CHECK(value.size() >= 12);
  const std::int32_t dimensions = pg_binary::ReadInt32(value.data());
  if (dimensions == 0) return true;
  if (dimensions != 1) return false;
  STEPWELL_CHECK(value.size() >= 20);
  const std::int32_t count = pg_binary::ReadInt32(value.data() + 12);
  std::size_t at = 20;
  for (std::int32_t i = 0; i < count; ++i) {
    STEPWELL_CHECK(value.size() - at >= 4);
    const std::int32_t bytes = pg_binary::ReadInt32(value.data() + at);
    at += 4;
    if (bytes < 0) return false;
    STEPWELL_CHECK(value.size() - at >= static_cast<std::size_t>(bytes));
    element(value.substr(at, bytes));
    at += bytes;
  }
  return true;
}

std::int64_t ReadInteger(std::string_view value) {
  switch (value.size()) {
    case 2:
      return pg_binary::ReadInt16(value.data());
    case 4:
      return pg_binary::ReadInt32(value.data());
    case 8:
      return pg_binary::ReadInt64(value.data());
  }
  STEPWELL_CHECK(false && "an integer has 2, 4 or 8 bytes");
  return 0;
}

}  // namespace

void PgResult::Clear::operator()(pg_result* result) const { PQclear(result); }

bool PgResult::ok() const {
  const ExecStatusType status = PQresultStatus(result_.get());
  return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

int PgResult::row_count() const { return PQntuples(result_.get()); }
int PgResult::column_count() const { return PQnfields(result_.get()); }

std::int64_t PgResult::affected_count() const {
  if (result_ == nullptr) return 0;
  const std::string_view text = PQcmdTuples(result_.get());
  std::int64_t count = 0;
  std::from_chars(text.data(), text.data() + text.size(), count);
  return count;
}

std::string_view PgResult::command() const {
  return result_ == nullptr ? "" : PQcmdStatus(result_.get());
}

PgOid PgResult::type(int column) const {
  return static_cast<PgOid>(PQftype(result_.get(), column));
}

bool PgResult::IsNull(int row, int column) const {
  STEPWELL_CHECK(row >= 0 && row < row_count() && column >= 0 && column < column_count());
  return PQgetisnull(result_.get(), row, column) != 0;
}

std::string_view PgResult::Value(int row, int column) const {
  STEPWELL_CHECK(!IsNull(row, column));
  return {PQgetvalue(result_.get(), row, column),
          static_cast<std::size_t>(PQgetlength(result_.get(), row, column))};
}

bool PgResult::Bool(int row, int column) const {
  STEPWELL_CHECK(type(column) == PgOid::kBool);
  return Value(row, column)[0] != 0;
}

std::int32_t PgResult::Int32(int row, int column) const {
  STEPWELL_CHECK(type(column) == PgOid::kInt2 || type(column) == PgOid::kInt4);
  return static_cast<std::int32_t>(ReadInteger(Value(row, column)));
}

std::int64_t PgResult::Int64(int row, int column) const {
  if (type(column) == PgOid::kOid) {
    return static_cast<std::uint32_t>(pg_binary::ReadInt32(Value(row, column).data()));
  }
  STEPWELL_CHECK(type(column) == PgOid::kInt2 || type(column) == PgOid::kInt4 ||
                 type(column) == PgOid::kInt8);
  return ReadInteger(Value(row, column));
}

double PgResult::Float64(int row, int column) const {
  if (type(column) == PgOid::kFloat4) {
    return std::bit_cast<float>(pg_binary::ReadInt32(Value(row, column).data()));
  }
  STEPWELL_CHECK(type(column) == PgOid::kFloat8);
  return pg_binary::ReadFloat64(Value(row, column).data());
}

std::string_view PgResult::Text(int row, int column) const {
  const PgOid oid = type(column);
  if (oid == PgOid::kJsonb) return Value(row, column).substr(1);  // after its version byte
  STEPWELL_CHECK(oid == PgOid::kText || oid == PgOid::kVarchar || oid == PgOid::kName ||
                 oid == PgOid::kJson || oid == PgOid::kChar);
  return Value(row, column);
}

std::string_view PgResult::Bytes(int row, int column) const {
  STEPWELL_CHECK(type(column) == PgOid::kBytea);
  return Value(row, column);
}

PgBits PgResult::Bits(int row, int column) const {
  STEPWELL_CHECK(type(column) == PgOid::kBit || type(column) == PgOid::kVarbit);
  const std::string_view value = Value(row, column);
  STEPWELL_CHECK(value.size() >= 4);
  return {value.substr(4), pg_binary::ReadInt32(value.data())};
}

std::int64_t PgResult::TimestampUs(int row, int column) const {
  STEPWELL_CHECK(type(column) == PgOid::kTimestamptz);
  const std::int64_t since_2000 = pg_binary::ReadInt64(Value(row, column).data());
  constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
  return since_2000 > kLast - kPgEpochUs ? kLast : since_2000 + kPgEpochUs;
}

std::int32_t PgResult::DateDays(int row, int column) const {
  STEPWELL_CHECK(type(column) == PgOid::kDate);
  const std::int32_t since_2000 = pg_binary::ReadInt32(Value(row, column).data());
  constexpr std::int32_t kLast = std::numeric_limits<std::int32_t>::max();
  return since_2000 > kLast - kPgEpochDays ? kLast : since_2000 + kPgEpochDays;
}

Uuid PgResult::UuidAt(int row, int column) const {
  STEPWELL_CHECK(type(column) == PgOid::kUuid);
  return *Uuid::FromBytes(Value(row, column));
}

std::vector<std::int64_t> PgResult::Int64Array(int row, int column) const {
  const PgOid oid = type(column);
  STEPWELL_CHECK(oid == PgOid::kInt2Array || oid == PgOid::kInt4Array || oid == PgOid::kInt8Array);
  std::vector<std::int64_t> values;
  const bool is_list = WalkArray(
      Value(row, column), [&](std::string_view bytes) { values.push_back(ReadInteger(bytes)); });
  if (!is_list) values.clear();
  return values;
}

std::vector<double> PgResult::Float64Array(int row, int column) const {
  STEPWELL_CHECK(type(column) == PgOid::kFloat8Array);
  std::vector<double> values;
  const bool is_list = WalkArray(Value(row, column), [&](std::string_view bytes) {
    STEPWELL_CHECK(bytes.size() == 8);
    values.push_back(pg_binary::ReadFloat64(bytes.data()));
  });
  if (!is_list) values.clear();
  return values;
}

}  // namespace stepwell
