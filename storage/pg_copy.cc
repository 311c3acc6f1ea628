#include "storage/pg_copy.h"

#include <bit>
#include <limits>
#include <utility>

#include "base/check.h"

namespace stepwell {
namespace {

// Signature, flags (0) and the length of the header extension (0).
constexpr std::string_view kHeader("PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0", 19);
constexpr std::int16_t kTrailer = -1;
constexpr std::int32_t kNullLength = -1;

}  // namespace

PgCopyRows::PgCopyRows(int column_count) : column_count_(column_count), data_(kHeader) {
  STEPWELL_CHECK(column_count > 0 && column_count <= 1600);
}

void PgCopyRows::StartField(std::size_t bytes) {
  STEPWELL_CHECK(bytes <= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()));
  if (column_ == 0) {
    pg_binary::AppendInt16(static_cast<std::int16_t>(column_count_), data_);
    ++row_count_;
  }
  column_ = (column_ + 1) % column_count_;
  pg_binary::AppendInt32(static_cast<std::int32_t>(bytes), data_);
}

template <typename Append>
PgCopyRows& PgCopyRows::Field(Append append) {
  StartField(0);
  const std::size_t start = data_.size();
  append(data_);
  const std::size_t bytes = data_.size() - start;
  STEPWELL_CHECK(bytes <= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()));
  std::string length;
  pg_binary::AppendInt32(static_cast<std::int32_t>(bytes), length);
  data_.replace(start - 4, 4, length);
  return *this;
}

PgCopyRows& PgCopyRows::Null() {
  StartField(0);
  data_.resize(data_.size() - 4);
  pg_binary::AppendInt32(kNullLength, data_);
  return *this;
}

PgCopyRows& PgCopyRows::Bool(bool value) {
  StartField(1);
  data_.push_back(value ? '\1' : '\0');
  return *this;
}

PgCopyRows& PgCopyRows::Int16(std::int16_t value) {
  StartField(2);
  pg_binary::AppendInt16(value, data_);
  return *this;
}

PgCopyRows& PgCopyRows::Int32(std::int32_t value) {
  StartField(4);
  pg_binary::AppendInt32(value, data_);
  return *this;
}

PgCopyRows& PgCopyRows::Int64(std::int64_t value) {
  StartField(8);
  pg_binary::AppendInt64(value, data_);
  return *this;
}

PgCopyRows& PgCopyRows::Float32(float value) {
  StartField(4);
  pg_binary::AppendInt32(std::bit_cast<std::int32_t>(value), data_);
  return *this;
}

PgCopyRows& PgCopyRows::Float64(double value) {
  StartField(8);
  pg_binary::AppendFloat64(value, data_);
  return *this;
}

PgCopyRows& PgCopyRows::Date(PgDate value) {
  StartField(4);
  pg_binary::AppendDate(value, data_);
  return *this;
}

PgCopyRows& PgCopyRows::Timestamp(PgTimestamp value) {
  StartField(8);
  pg_binary::AppendTimestamp(value, data_);
  return *this;
}

PgCopyRows& PgCopyRows::Text(std::string_view value) { return Bytes(value); }

PgCopyRows& PgCopyRows::Bytes(std::string_view value) {
  StartField(value.size());
  data_.append(value);
  return *this;
}

PgCopyRows& PgCopyRows::Bits(PgBits value) {
  return Field([&](std::string& out) { pg_binary::AppendBits(value, out); });
}

PgCopyRows& PgCopyRows::UuidValue(const Uuid& value) {
  StartField(value.bytes.size());
  pg_binary::AppendUuid(value, data_);
  return *this;
}

PgCopyRows& PgCopyRows::Jsonb(PgJsonb value) {
  return Field([&](std::string& out) { pg_binary::AppendJsonb(value, out); });
}

PgCopyRows& PgCopyRows::Int16Array(std::span<const std::int16_t> values) {
  return Field([&](std::string& out) { pg_binary::AppendArray(values, out); });
}
PgCopyRows& PgCopyRows::Int32Array(std::span<const std::int32_t> values) {
  return Field([&](std::string& out) { pg_binary::AppendArray(values, out); });
}
PgCopyRows& PgCopyRows::Int64Array(std::span<const std::int64_t> values) {
  return Field([&](std::string& out) { pg_binary::AppendArray(values, out); });
}
PgCopyRows& PgCopyRows::Float64Array(std::span<const double> values) {
  return Field([&](std::string& out) { pg_binary::AppendArray(values, out); });
}

std::string PgCopyRows::Take() {
  STEPWELL_CHECK(column_ == 0);
  pg_binary::AppendInt16(kTrailer, data_);
  row_count_ = 0;
  return std::exchange(data_, std::string(kHeader));
}

}  // namespace stepwell
