// PgResult: the rows of one statement, in binary form, owned. Move-only; const calls are
// thread-safe.
//
//   for (int row = 0; row < result.row_count(); ++row) {
//     const std::int64_t sequence = result.Int64(row, 0);
//     if (!result.IsNull(row, 1)) name = result.Text(row, 1);
//   }
//
// The getters check the column's type and that the value is not NULL, and abort otherwise: the
// statement and the getter stand in one file of ours, so a mismatch is our mistake. A column of
// a foreign type is cast in the SQL.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/uuid.h"
#include "storage/pg_binary.h"

struct pg_result;  // libpq's

namespace stepwell {

class PgResult {
 public:
  PgResult() = default;
  explicit PgResult(pg_result* result) : result_(result) {}

  // The statement was done; of several that travel together one may not be.
  bool ok() const;
  int row_count() const;
  int column_count() const;
  // Rows that an INSERT, UPDATE, DELETE or COPY touched; 0 for others.
  std::int64_t affected_count() const;
  // The command tag: "COMMIT", "ROLLBACK", "INSERT 0 5".
  std::string_view command() const;
  PgOid type(int column) const;
  bool IsNull(int row, int column) const;

  bool Bool(int row, int column) const;
  // int2 and int4.
  std::int32_t Int32(int row, int column) const;
  // int2, int4, int8 and oid.
  std::int64_t Int64(int row, int column) const;
  // float4 and float8.
  double Float64(int row, int column) const;
  // text, varchar, name, json, jsonb. Valid while the result lives; so for Bytes and Bits.
  std::string_view Text(int row, int column) const;
  std::string_view Bytes(int row, int column) const;
  // bit and varbit.
  PgBits Bits(int row, int column) const;
  // timestamptz, microseconds since 1970. Infinities come back saturated.
  std::int64_t TimestampUs(int row, int column) const;
  // Days since 1970.
  std::int32_t DateDays(int row, int column) const;
  Uuid UuidAt(int row, int column) const;
  // int2[], int4[] and int8[]. One of several dimensions, or with a NULL in it, reads as empty: who needs
  // its elements refuses the row.
  std::vector<std::int64_t> Int64Array(int row, int column) const;
  std::vector<double> Float64Array(int row, int column) const;

 private:
  struct Clear {
    void operator()(pg_result* result) const;
  };
  std::string_view Value(int row, int column) const;

  std::unique_ptr<pg_result, Clear> result_;
};

}  // namespace stepwell
