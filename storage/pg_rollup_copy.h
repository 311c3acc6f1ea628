// Rows of rollups and rollup_ticks as COPY writes them. Stands between PgMerger and COPY. Confined to
// one thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "storage/encoded_rollup.h"
#include "storage/pg_connection.h"
#include "storage/pg_copy.h"
#include "storage/rollup_ring.h"
#include "storage/row_place.h"

namespace stepwell {

// Gathers rows of one keep class and day, for its leaves or for where they wait to be joined.
class RollupCopy {
 public:
  RollupCopy(RollupHome home, std::int16_t keep_class, std::int32_t received_day);

  // Bytes of the row are returned. `first_series_no`: whose metric group counts them.
  std::int64_t AddTicks(const RowPlace& place, const EncodedRollup& rollup,
                        SeriesNo first_series_no);
  std::int64_t AddColumn(const RowPlace& place, std::int32_t step_seconds,
                         const EncodedRollupColumn& column);

  // Of both buffers.
  std::size_t bytes() const { return columns_.bytes() + ticks_.bytes(); }
  // Copies what was added, inside the caller's transaction; empty afterwards.
  absl::Status Send(PgConnection& connection);

 private:
  const SqlText columns_sql_;
  const SqlText ticks_sql_;
  PgCopyRows columns_;
  PgCopyRows ticks_;
};

}  // namespace stepwell
