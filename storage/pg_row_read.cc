#include "storage/pg_row_read.h"

#include <string>

namespace stepwell {
namespace {

// Reads column after column, so that the order stands in the column lists alone.
class RowReader {
 public:
  RowReader(const PgResult& result, int row) : result_(result), row_(row) {}

  std::int16_t Int16() { return static_cast<std::int16_t>(result_.Int32(row_, column_++)); }
  std::int32_t Int32() { return result_.Int32(row_, column_++); }
  std::int64_t Int64() { return result_.Int64(row_, column_++); }
  std::int32_t Day() { return result_.DateDays(row_, column_++); }
  double Float64() {
    const int column = column_++;
    return result_.IsNull(row_, column) ? 0 : result_.Float64(row_, column);
  }
  BitString Bits() {
    const int column = column_++;
    if (result_.IsNull(row_, column)) return {};
    const PgBits bits = result_.Bits(row_, column);
    return {std::string(bits.bits), static_cast<std::size_t>(bits.bit_count)};
  }
  std::vector<std::int64_t> Integers() {
    const int column = column_++;
    if (result_.IsNull(row_, column)) return {};
    return result_.Int64Array(row_, column);
  }
  std::vector<double> Floats() {
    const int column = column_++;
    if (result_.IsNull(row_, column)) return {};
    return result_.Float64Array(row_, column);
  }

 private:
  const PgResult& result_;
  const int row_;
  int column_ = 0;
};

}  // namespace

RecentTicksRow ReadRecentTicks(const PgResult& result, int row) {
  RowReader in(result, row);
  RecentTicksRow read;
  EncodedTicks& ticks = read.ticks;
  read.recent.segment = in.Int16();
  read.recent.fold_no = FoldNo{in.Int64()};
  read.recent.received_time_us = in.Int64();
  for (const std::int64_t series_no : in.Integers()) {
    ticks.columns.emplace_back().series_no = SeriesNo{static_cast<std::int32_t>(series_no)};
  }
  read.place.trial_id = TrialId{in.Int64()};
  read.place.tick_no = in.Int64();
  ticks.first_time_us = in.Int64();
  ticks.last_time_us = in.Int64();
  ticks.times.base = in.Int64();
  ticks.times.factor = in.Int64();
  ticks.batches.base = in.Int64();
  ticks.batches.factor = in.Int64();
  read.place.writer_no = WriterNo{in.Int32()};
  ticks.tick_group = static_cast<std::uint32_t>(in.Int32());
  ticks.tick_count = in.Int32();
  ticks.first_batch = in.Int32();
  ticks.last_batch = in.Int32();
  read.place.received_day = in.Day();
  read.place.keep_class = in.Int16();
  for (EncodedVector* vector : {&ticks.times, &ticks.batches}) {
    vector->form = static_cast<Form>(in.Int16());
    vector->width = in.Int16();
    vector->width2 = in.Int16();
  }
  for (EncodedVector* vector : {&ticks.times, &ticks.batches}) {
    vector->bits = in.Bits();
    vector->bits2 = in.Bits();
    vector->dictionary = in.Integers();
  }
  return read;
}

RecentColumnRow ReadRecentColumn(const PgResult& result, int row) {
  RowReader in(result, row);
  RecentColumnRow read;
  EncodedColumn& column = read.column;
  EncodedVector& values = column.values;
  read.place.trial_id = TrialId{in.Int64()};
  read.place.tick_no = in.Int64();
  column.first_time_us = in.Int64();
  column.last_time_us = in.Int64();
  column.min = in.Float64();
  column.max = in.Float64();
  column.sum = in.Float64();
  column.last = in.Float64();
  values.base = in.Int64();
  values.factor = in.Int64();
  column.series_no = SeriesNo{in.Int32()};
  read.place.writer_no = WriterNo{in.Int32()};
  column.first_batch = in.Int32();
  column.last_batch = in.Int32();
  column.sample_count = in.Int32();
  column.nan_count = in.Int32();
  read.place.received_day = in.Day();
  read.place.keep_class = in.Int16();
  values.form = static_cast<Form>(in.Int16());
  values.width = in.Int16();
  values.width2 = in.Int16();
  values.divisor_exponent = in.Int16();
  values.bits = in.Bits();
  values.bits2 = in.Bits();
  values.dictionary = in.Integers();
  values.raw = in.Floats();
  column.presence = in.Bits();
  return read;
}

}  // namespace stepwell
