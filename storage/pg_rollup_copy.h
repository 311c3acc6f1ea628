// Rows of rollups and rollup_ticks as COPY writes them, and the lists of their columns, which the
// reader shares. Stands between PgMerger and COPY. Confined to one thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "storage/encoded_rollup.h"
#include "storage/pg_connection.h"
#include "storage/pg_copy.h"
#include "storage/row_place.h"

namespace stepwell {

// Prefixes of the columns of each vector, in the order in which they are copied and read.
inline constexpr std::array<const char*, 5> kRollupTickVectors = {
    "bucket", "tick_count", "last_offset", "first_batch", "last_batch"};
inline constexpr std::array<const char*, 4> kRollupValueVectors = {"min", "max", "sum", "last"};
inline constexpr std::array<const char*, 3> kRollupCountVectors = {"count", "nan_count",
                                                                   "last_lag"};

// "<prefix>_form, <prefix>_width, ...": what one vector takes, each column behind `table`. Values
// have a divisor and raw doubles, integers have not.
std::string RollupVectorColumns(const char* table, const char* prefix, bool has_values);

// Gathers rows for the leaves of one keep class and day.
class RollupCopy {
 public:
  RollupCopy(std::int16_t keep_class, std::int32_t received_day);

  // Bytes of the row are returned.
  std::int64_t AddTicks(const RowPlace& place, const EncodedRollup& rollup);
  std::int64_t AddColumn(const RowPlace& place, std::int32_t step_seconds,
                         const EncodedRollupColumn& column);

  // Copies what was added, inside the caller's transaction; empty afterwards.
  absl::Status Send(PgConnection& connection);

 private:
  const std::string columns_sql_;
  const std::string ticks_sql_;
  PgCopyRows columns_;
  PgCopyRows ticks_;
};

}  // namespace stepwell
