#include "storage/pg_rollup_copy.h"

#include <optional>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/pg_row_copy.h"
#include "storage/pg_vector_copy.h"

namespace stepwell {
namespace {

constexpr int kIntegerColumns = 8;
constexpr int kValueColumns = 10;
constexpr int kTicksHeadColumns = 9;
constexpr int kHeadColumns = 12;
constexpr int kTicksColumnCount =
    kTicksHeadColumns + kIntegerColumns * static_cast<int>(kRollupTickVectors.size());
constexpr int kColumnCount = kHeadColumns +
                             kValueColumns * static_cast<int>(kRollupValueVectors.size()) +
                             kIntegerColumns * static_cast<int>(kRollupCountVectors.size());

std::string CopySql(const char* table, std::int16_t keep_class, std::int32_t received_day,
                    const std::string& columns) {
  return absl::StrCat("copy stepwell.", LeafName(table, keep_class, received_day), " (", columns,
                      ") from stdin (format binary)");
}

std::string TicksColumnList() {
  std::string list =
      "trial_id, tick_no, first_time_us, last_time_us, writer_no, bucket_count, received_day, "
      "keep_class, step_seconds";
  for (const char* prefix : kRollupTickVectors) {
    absl::StrAppend(&list, ", ", RollupVectorColumns("", prefix, false));
  }
  return list;
}

std::string ColumnList() {
  std::string list =
      "trial_id, tick_no, first_time_us, last_time_us, series_no, writer_no, bucket_count, "
      "received_day, keep_class, step_seconds, relative, presence";
  for (const char* prefix : kRollupValueVectors) {
    absl::StrAppend(&list, ", ", RollupVectorColumns("", prefix, true));
  }
  for (const char* prefix : kRollupCountVectors) {
    absl::StrAppend(&list, ", ", RollupVectorColumns("", prefix, false));
  }
  return list;
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
  for (int i = 0; i < (has_values ? kValueColumns : kIntegerColumns); ++i) rows.Null();
}

}  // namespace

std::string RollupVectorColumns(const char* table, const char* prefix, bool has_values) {
  std::string list;
  const auto add = [&](std::string_view column) {
    absl::StrAppend(&list, list.empty() ? "" : ", ", table, prefix, "_", std::string(column));
  };
  for (const char* column :
       {"form", "width", "width2", "base", "factor", "bits", "bits2", "dictionary"}) {
    add(column);
  }
  if (has_values) {
    add("divisor_exponent");
    add("raw");
  }
  return list;
}

RollupCopy::RollupCopy(std::int16_t keep_class, std::int32_t received_day)
    : columns_sql_(CopySql("rollups", keep_class, received_day, ColumnList())),
      ticks_sql_(CopySql("rollup_ticks", keep_class, received_day, TicksColumnList())),
      columns_(kColumnCount),
      ticks_(kTicksColumnCount) {}

std::int64_t RollupCopy::AddTicks(const RowPlace& place, const EncodedRollup& rollup) {
  const std::size_t bytes_before = ticks_.bytes();
  ticks_.Int64(Value(place.trial_id))
      .Int64(place.tick_no)
      .Int64(rollup.first_time_us)
      .Int64(rollup.last_time_us)
      .Int32(Value(place.writer_no))
      .Int32(rollup.bucket_count)
      .Date({place.received_day})
      .Int16(place.keep_class)
      .Int16(static_cast<std::int16_t>(rollup.step_seconds));
  // In the order of kRollupTickVectors.
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
    STEPWELL_RETURN_IF_ERROR(connection.CopyIn(ticks_sql_.c_str(), ticks_.Take()).status());
  }
  if (columns_.row_count() > 0) {
    STEPWELL_RETURN_IF_ERROR(connection.CopyIn(columns_sql_.c_str(), columns_.Take()).status());
  }
  return absl::OkStatus();
}

}  // namespace stepwell
