#include "storage/pg_row_copy.h"

#include <span>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/civil_time.h"
#include "base/status_macros.h"
#include "storage/pg_vector_copy.h"

namespace stepwell {
namespace {

constexpr int kMetricsColumnCount = 27;
constexpr int kTicksColumnCount = 27;

SqlText CopySql(const SqlText& table, SqlPiece extra, SqlPiece columns) {
  return SqlCat({"copy ", table, " (", extra, columns, ") from stdin (format binary)"});
}

void AddOptional(bool known, double value, PgCopyRows& rows) {
  if (known) {
    rows.Float64(value);
  } else {
    rows.Null();
  }
}

}  // namespace

std::string LeafName(std::string_view table, std::int16_t keep_class, std::int32_t received_day) {
  const absl::CivilDay day = absl::CivilDay(1970, 1, 1) + received_day;
  return absl::StrFormat("%s_k%d_%04d%02d%02d", std::string(table), keep_class, day.year(),
                         day.month(), day.day());
}

SqlText LeafTable(std::string_view table, std::int16_t keep_class, std::int32_t received_day) {
  return SqlCat({"stepwell.", SqlName(LeafName(table, keep_class, received_day))});
}

RowCopy::RowCopy(SqlText metrics_sql, SqlText ticks_sql, int extra_metrics, int extra_ticks)
    : metrics_sql_(std::move(metrics_sql)),
      ticks_sql_(std::move(ticks_sql)),
      metrics_(kMetricsColumnCount + extra_metrics),
      ticks_(kTicksColumnCount + extra_ticks) {}

RowCopy RowCopy::ForLeaf(std::int16_t keep_class, std::int32_t received_day) {
  return RowCopy(
      CopySql(LeafTable("metrics", keep_class, received_day), "", kMetricsColumnList),
      CopySql(LeafTable("ticks", keep_class, received_day), "series_nos, ", kTicksColumnList), 0,
      1);
}

RowCopy RowCopy::ForRecent(std::int16_t segment) {
  return RowCopy(CopySql(SqlCat({"stepwell.recent_", SqlInteger(segment)}), "segment, fold_no, ",
                         kMetricsColumnList),
                 CopySql(SqlCat({"stepwell.recent_ticks_", SqlInteger(segment)}),
                         "segment, fold_no, received_time_us, series_nos, ", kTicksColumnList),
                 2, 4);
}

std::int64_t RowCopy::AddTicks(const RowPlace& place, const RecentPlace* recent,
                               const EncodedTicks& ticks,
                               const std::vector<std::int32_t>& series_nos) {
  const std::size_t bytes_before = ticks_.bytes();
  if (recent != nullptr) {
    std::vector<std::int32_t> folded;
    for (const EncodedColumn& column : ticks.columns) folded.push_back(Value(column.series_no));
    ticks_.Int16(recent->segment)
        .Int64(Value(recent->fold_no))
        .Int64(recent->received_time_us)
        .Int32Array(folded);
  } else {
    ticks_.Int32Array(series_nos);
  }
  ticks_.Int64(Value(place.trial_id))
      .Int64(place.tick_no)
      .Int64(ticks.first_time_us)
      .Int64(ticks.last_time_us)
      .Int64(ticks.times.base)
      .Int64(ticks.times.factor)
      .Int64(ticks.batches.base)
      .Int64(ticks.batches.factor)
      .Int32(Value(place.writer_no))
      .Int32(static_cast<std::int32_t>(ticks.tick_group))
      .Int32(ticks.tick_count)
      .Int32(ticks.first_batch)
      .Int32(ticks.last_batch)
      .Date({place.received_day})
      .Int16(place.keep_class);
  for (const EncodedVector* vector : {&ticks.times, &ticks.batches}) {
    ticks_.Int16(static_cast<std::int16_t>(vector->form))
        .Int16(vector->width)
        .Int16(vector->width2);
  }
  for (const EncodedVector* vector : {&ticks.times, &ticks.batches}) {
    AddBits(vector->bits, ticks_);
    AddBits(vector->bits2, ticks_);
    AddIntegers(vector->dictionary, ticks_);
  }
  return static_cast<std::int64_t>(ticks_.bytes() - bytes_before);
}

std::int64_t RowCopy::AddColumn(const RowPlace& place, const RecentPlace* recent,
                                const EncodedColumn& column) {
  const std::size_t bytes_before = metrics_.bytes();
  if (recent != nullptr) metrics_.Int16(recent->segment).Int64(Value(recent->fold_no));
  metrics_.Int64(Value(place.trial_id))
      .Int64(place.tick_no)
      .Int64(column.first_time_us)
      .Int64(column.last_time_us);
  for (const double value : {column.min, column.max, column.sum, column.last}) {
    AddOptional(column.has_numbers(), value, metrics_);
  }
  const EncodedVector& values = column.values;
  metrics_.Int64(values.base)
      .Int64(values.factor)
      .Int32(Value(column.series_no))
      .Int32(Value(place.writer_no))
      .Int32(column.first_batch)
      .Int32(column.last_batch)
      .Int32(column.sample_count)
      .Int32(column.nan_count)
      .Date({place.received_day})
      .Int16(place.keep_class)
      .Int16(static_cast<std::int16_t>(values.form))
      .Int16(values.width)
      .Int16(values.width2)
      .Int16(values.divisor_exponent);
  AddBits(values.bits, metrics_);
  AddBits(values.bits2, metrics_);
  AddIntegers(values.dictionary, metrics_);
  AddDoubles(values.raw, metrics_);
  AddBits(column.presence, metrics_);
  return static_cast<std::int64_t>(metrics_.bytes() - bytes_before);
}

absl::Status RowCopy::Send(PgConnection& connection) {
  // Rows before their ticks would be as well: nobody sees either before the COMMIT.
  if (ticks_.row_count() > 0) {
    STEPWELL_RETURN_IF_ERROR(connection.CopyIn(ticks_sql_, ticks_.Take()).status());
  }
  if (metrics_.row_count() > 0) {
    STEPWELL_RETURN_IF_ERROR(connection.CopyIn(metrics_sql_, metrics_.Take()).status());
  }
  return absl::OkStatus();
}

}  // namespace stepwell
