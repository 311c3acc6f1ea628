// PgCopyRows: rows in the form of COPY ... FROM STDIN (FORMAT binary), built in memory for
// PgConnection::CopyIn. It stands between the store and the wire. Thread-compatible.
//
//   PgCopyRows rows(3);
//   rows.Int64(trial_id).Timestamp({received_us}).Bytes(body);
//   connection.CopyIn("copy stepwell.journal_0 (trial_id, received_time, body) "
//                     "from stdin (format binary)", rows.Take());
//
// Binary COPY does not convert: each column's type must be exactly the one added, or PostgreSQL
// answers 22P03 or 08P01. Values keep every bit (NaN payloads, -0). The caller bounds the size.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/uuid.h"
#include "storage/pg_binary.h"

namespace stepwell {

class PgCopyRows {
 public:
  // Every row has `column_count` fields; the field after a full row starts the next one.
  // REQUIRES: 0 < column_count <= 1600 (PostgreSQL's limit).
  explicit PgCopyRows(int column_count);

  PgCopyRows& Null();
  PgCopyRows& Bool(bool value);
  PgCopyRows& Int16(std::int16_t value);
  PgCopyRows& Int32(std::int32_t value);
  PgCopyRows& Int64(std::int64_t value);
  PgCopyRows& Float32(float value);
  PgCopyRows& Float64(double value);
  PgCopyRows& Date(PgDate value);
  PgCopyRows& Timestamp(PgTimestamp value);
  // UTF-8 without NUL, or PostgreSQL refuses the whole COPY with 22021.
  PgCopyRows& Text(std::string_view value);
  PgCopyRows& Bytes(std::string_view value);
  PgCopyRows& Bits(PgBits value);
  PgCopyRows& UuidValue(const Uuid& value);
  PgCopyRows& Jsonb(PgJsonb value);
  PgCopyRows& Int16Array(std::span<const std::int16_t> values);
  PgCopyRows& Int32Array(std::span<const std::int32_t> values);
  PgCopyRows& Int64Array(std::span<const std::int64_t> values);
  PgCopyRows& Float64Array(std::span<const double> values);

  std::int64_t row_count() const { return row_count_; }
  // Of the buffer so far.
  std::size_t bytes() const { return data_.size(); }

  // The whole stream with header and trailer; this is empty again afterwards.
  // REQUIRES: the last row is full.
  std::string Take();

 private:
  // Starts a row if the last is full, then a field whose length is known.
  void StartField(std::size_t bytes);
  // For fields whose length shows afterwards: `append` writes the value.
  template <typename Append>
  PgCopyRows& Field(Append append);

  const int column_count_;
  int column_ = 0;
  std::int64_t row_count_ = 0;
  std::string data_;
};

}  // namespace stepwell
