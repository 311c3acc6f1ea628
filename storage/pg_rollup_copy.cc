#include "storage/pg_rollup_copy.h"

#include <optional>

#include "base/status_macros.h"
#include "storage/pg_rollup_columns.h"
#include "storage/pg_vector_copy.h"

namespace stepwell {
namespace {

constexpr char kTicksHead[] =
    "trial_id, tick_no, first_time_us, last_time_us, writer_no, bucket_count, received_day, "
    "keep_class, step_seconds, first_series_no, ";
constexpr int kTicksColumnCount = 10 + kRollupIntegerColumns * kRollupTickVectors;
constexpr char kHead[] =
    "trial_id, tick_no, first_time_us, last_time_us, series_no, writer_no, bucket_count, "
    "received_day, keep_class, step_seconds, relative, presence, ";
constexpr int kColumnCount =
    12 + kRollupValueColumns * kRollupValueVectors + kRollupIntegerColumns * kRollupCountVectors;

SqlText CopySql(const SqlText& table, SqlPiece head, const SqlText& vectors) {
  return SqlCat({"copy ", table, " (", head, vectors, ") from stdin (format binary)"});
}

// What most vectors have is NULL, which takes no bytes: a rollup's vectors are short, and many.
void AddVector(const EncodedVector& vector, bool has_values, PgCopyRows& rows) {
  const auto unless = [&rows](std::int16_t usual, std::int16_t value) {
    if (value == usual) {
      rows.Null();
    } else {
      rows.Int16(value);
    }
  };
  rows.Int16(static_cast<std::int16_t>(vector.form)).Int16(vector.width);
  unless(0, vector.width2);
  rows.Int64(vector.base);
  if (vector.factor == 1) {
    rows.Null();
  } else {
    rows.Int64(vector.factor);
  }
  AddBits(vector.bits, rows);
  AddBits(vector.bits2, rows);
  AddIntegers(vector.dictionary, rows);
  if (!has_values) return;
  unless(0, vector.divisor_exponent);
  AddDoubles(vector.raw, rows);
}

void AddOptional(const std::optional<EncodedVector>& vector, bool has_values, PgCopyRows& rows) {
  if (vector.has_value()) {
    AddVector(*vector, has_values, rows);
    return;
  }
  for (int i = 0; i < (has_values ? kRollupValueColumns : kRollupIntegerColumns); ++i) rows.Null();
}

}  // namespace

RollupCopy::RollupCopy(RollupHome home, std::int16_t keep_class, std::int32_t received_day)
    : columns_sql_(CopySql(RollupTable("rollups", home, keep_class, received_day), kHead,
                           RollupVectorList())),
      ticks_sql_(CopySql(RollupTable("rollup_ticks", home, keep_class, received_day), kTicksHead,
                         RollupTickVectorList())),
      columns_(kColumnCount),
      ticks_(kTicksColumnCount) {}

std::int64_t RollupCopy::AddTicks(const RowPlace& place, const EncodedRollup& rollup,
                                  SeriesNo first_series_no) {
  const std::size_t bytes_before = ticks_.bytes();
  ticks_.Int64(Value(place.trial_id))
      .Int64(place.tick_no)
      .Int64(rollup.first_time_us)
      .Int64(rollup.last_time_us)
      .Int32(Value(place.writer_no))
      .Int32(rollup.bucket_count)
      .Date({place.received_day})
      .Int16(place.keep_class)
      .Int16(static_cast<std::int16_t>(rollup.step_seconds))
      .Int32(Value(first_series_no));
  // In the order of RollupTickVectorList, as RollupVectorList below.
  for (const EncodedVector* vector : {&rollup.buckets, &rollup.tick_counts, &rollup.last_offsets,
                                      &rollup.first_batches, &rollup.last_batches}) {
    AddVector(*vector, /*has_values=*/false, ticks_);
  }
  return static_cast<std::int64_t>(ticks_.bytes() - bytes_before);
}

std::int64_t RollupCopy::AddColumn(const RowPlace& place, std::int32_t step_seconds,
                                   const EncodedRollupColumn& column) {
  const std::size_t bytes_before = columns_.bytes();
  columns_.Int64(Value(place.trial_id))
      .Int64(place.tick_no)
      .Int64(column.first_time_us)
      .Int64(column.last_time_us)
      .Int32(Value(column.series_no))
      .Int32(Value(place.writer_no))
      .Int32(column.bucket_count)
      .Date({place.received_day})
      .Int16(place.keep_class)
      .Int16(static_cast<std::int16_t>(step_seconds))
      .Int16(column.relative);
  AddBits(column.presence, columns_);
  AddVector(column.mins, /*has_values=*/true, columns_);
  for (const auto* vector : {&column.maxs, &column.sums, &column.lasts}) {
    AddOptional(*vector, /*has_values=*/true, columns_);
  }
  for (const auto* vector : {&column.counts, &column.nan_counts, &column.last_lags}) {
    AddOptional(*vector, /*has_values=*/false, columns_);
  }
  return static_cast<std::int64_t>(columns_.bytes() - bytes_before);
}

absl::Status RollupCopy::Send(PgConnection& connection) {
  if (ticks_.row_count() > 0) {
    STEPWELL_RETURN_IF_ERROR(connection.CopyIn(ticks_sql_, ticks_.Take()).status());
  }
  if (columns_.row_count() > 0) {
    STEPWELL_RETURN_IF_ERROR(connection.CopyIn(columns_sql_, columns_.Take()).status());
  }
  return absl::OkStatus();
}

}  // namespace stepwell
