#include "storage/pg_rollup_read.h"

#include <cstdint>
#include <optional>

#include "storage/encoded_rollup.h"
#include "storage/pg_reader_ticks.h"
#include "storage/pg_rollup_columns.h"

namespace stepwell {
namespace {

// In the order of pg_rollup_columns.
VectorColumns ColumnsFrom(int first, bool has_values) {
  return {.form = first,
          .width = first + 1,
          .width2 = first + 2,
          .base = first + 3,
          .factor = first + 4,
          .divisor_exponent = has_values ? first + 8 : -1,
          .bits = first + 5,
          .bits2 = first + 6,
          .dictionary = first + 7,
          .raw = has_values ? first + 9 : -1};
}

std::optional<EncodedVector> OptionalAt(const PgResult& result, int row, int first,
                                        bool has_values) {
  if (result.IsNull(row, first)) return std::nullopt;
  return VectorAt(result, row, ColumnsFrom(first, has_values));
}

}  // namespace

const SqlText& RollupGridColumns() {
  static const SqlText* columns =
      new SqlText(SqlCat({"bucket_count, step_seconds, ", RollupTickVectorList()}));
  return *columns;
}

absl::StatusOr<RollupGrid> RollupGridAt(const PgResult& result, int row, int first) {
  EncodedRollup encoded;
  encoded.bucket_count = result.Int32(row, first);
  encoded.step_seconds = result.Int32(row, first + 1);
  first += 2;
  for (EncodedVector* vector : {&encoded.buckets, &encoded.tick_counts, &encoded.last_offsets,
                                &encoded.first_batches, &encoded.last_batches}) {
    *vector = VectorAt(result, row, ColumnsFrom(first, false));
    first += kRollupIntegerColumns;
  }
  return DecodeRollupGrid(encoded);
}

const SqlText& RollupColumns() {
  static const SqlText* columns =
      new SqlText(SqlCat({"bucket_count, presence, relative, ", RollupVectorList()}));
  return *columns;
}

absl::StatusOr<RollupColumn> RollupColumnAt(const PgResult& result, int row, int first,
                                            const RollupGrid& grid) {
  EncodedRollupColumn encoded;
  encoded.bucket_count = result.Int32(row, first);
  if (!result.IsNull(row, first + 1)) {
    const PgBits bits = result.Bits(row, first + 1);
    encoded.presence = {std::string(bits.bits), static_cast<std::size_t>(bits.bit_count)};
  }
  encoded.relative = static_cast<std::int16_t>(result.Int32(row, first + 2));
  first += 3;
  encoded.mins = VectorAt(result, row, ColumnsFrom(first, true));
  for (auto* vector : {&encoded.maxs, &encoded.sums, &encoded.lasts}) {
    *vector = OptionalAt(result, row, first += kRollupValueColumns, true);
  }
  first += kRollupValueColumns;
  for (auto* vector : {&encoded.counts, &encoded.nan_counts, &encoded.last_lags}) {
    *vector = OptionalAt(result, row, first, false);
    first += kRollupIntegerColumns;
  }
  return DecodeRollupColumn(encoded, grid);
}

}  // namespace stepwell
