// PgParam: one bound value of a statement, with its SQL type, in binary form. A value.
//
//   connection.Exec("select $1 + $2", {std::int64_t{1}, std::int32_t{2}});
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/uuid.h"
#include "storage/pg_binary.h"

namespace stepwell {

class PgParam {
 public:
  // NOLINTBEGIN(google-explicit-constructor): a statement's values are written as they are.
  PgParam(bool value) : PgParam(PgOid::kBool, std::string(1, value ? '\1' : '\0')) {}
  PgParam(std::int16_t value) : oid_(PgOid::kInt2) { pg_binary::AppendInt16(value, bytes_); }
  PgParam(std::int32_t value) : oid_(PgOid::kInt4) { pg_binary::AppendInt32(value, bytes_); }
  PgParam(std::int64_t value) : oid_(PgOid::kInt8) { pg_binary::AppendInt64(value, bytes_); }
  PgParam(double value) : oid_(PgOid::kFloat8) { pg_binary::AppendFloat64(value, bytes_); }
  PgParam(std::string_view text) : PgParam(PgOid::kText, std::string(text)) {}
  PgParam(const std::string& text) : PgParam(PgOid::kText, text) {}
  PgParam(const char* text) : PgParam(PgOid::kText, text) {}
  PgParam(PgBytes value) : PgParam(PgOid::kBytea, std::string(value.bytes)) {}
  PgParam(PgTimestamp value) : oid_(PgOid::kTimestamptz) {
    pg_binary::AppendTimestamp(value, bytes_);
  }
  PgParam(PgDate value) : oid_(PgOid::kDate) { pg_binary::AppendDate(value, bytes_); }
  PgParam(PgBits value) : oid_(PgOid::kVarbit) { pg_binary::AppendBits(value, bytes_); }
  PgParam(PgJsonb value) : oid_(PgOid::kJsonb) { pg_binary::AppendJsonb(value, bytes_); }
  PgParam(const Uuid& value) : oid_(PgOid::kUuid) { pg_binary::AppendUuid(value, bytes_); }
  PgParam(std::span<const std::int64_t> values) : oid_(PgOid::kInt8Array) {
    pg_binary::AppendArray(values, bytes_);
  }
  PgParam(std::span<const std::int32_t> values) : oid_(PgOid::kInt4Array) {
    pg_binary::AppendArray(values, bytes_);
  }
  PgParam(std::span<const std::int16_t> values) : oid_(PgOid::kInt2Array) {
    pg_binary::AppendArray(values, bytes_);
  }
  PgParam(std::span<const double> values) : oid_(PgOid::kFloat8Array) {
    pg_binary::AppendArray(values, bytes_);
  }
  PgParam(std::span<const Uuid> values) : oid_(PgOid::kUuidArray) {
    pg_binary::AppendArray(values, bytes_);
  }
  // NOLINTEND(google-explicit-constructor)
  static PgParam TextArray(std::span<const std::string> values) {
    PgParam param(PgOid::kTextArray, {});
    pg_binary::AppendArray(PgOid::kText, values, param.bytes_);
    return param;
  }
  static PgParam BytesArray(std::span<const std::string> values) {
    PgParam param(PgOid::kByteaArray, {});
    pg_binary::AppendArray(PgOid::kBytea, values, param.bytes_);
    return param;
  }
  static PgParam Null(PgOid oid) {
    PgParam param(oid, {});
    param.null_ = true;
    return param;
  }

  PgOid oid() const { return oid_; }
  bool null() const { return null_; }
  const std::string& bytes() const { return bytes_; }

 private:
  PgParam(PgOid oid, std::string bytes) : oid_(oid), bytes_(std::move(bytes)) {}

  PgOid oid_;
  bool null_ = false;
  std::string bytes_;
};

}  // namespace stepwell
