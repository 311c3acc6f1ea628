// Rows of metrics, ticks, recent and recent_ticks as COPY writes them: the order of the columns
// stands here once. Functions for PgFolder and PgMerger.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "storage/encoded_ticks.h"
#include "storage/pg_connection.h"
#include "storage/pg_copy.h"
#include "storage/row_place.h"
#include "storage/sql_text.h"

namespace stepwell {

// The columns of metrics and of ticks, in the order in which they are copied.
inline constexpr char kMetricsColumnList[] =
    "trial_id, tick_no, first_time_us, last_time_us, min, max, sum, last, base, factor, series_no, "
    "writer_no, first_batch, last_batch, sample_count, nan_count, received_day, keep_class, form, "
    "width, width2, divisor_exponent, bits, bits2, dictionary, raw, presence";
inline constexpr char kTicksColumnList[] =
    "trial_id, tick_no, first_time_us, last_time_us, time_base, time_factor, batch_base, "
    "batch_factor, writer_no, tick_group, tick_count, first_batch, last_batch, received_day, "
    "keep_class, time_form, time_width, time_width2, batch_form, batch_width, batch_width2, "
    "time_bits, time_bits2, time_dictionary, batch_bits, batch_bits2, batch_dictionary";

// Gathers rows for one pair of tables and copies them in pieces. Confined to one thread.
class RowCopy {
 public:
  // metrics_k0_20260101 and ticks_k0_20260101, by the names that LeafName gives.
  static RowCopy ForLeaf(std::int16_t keep_class, std::int32_t received_day);
  static RowCopy ForRecent(std::int16_t segment);

  // Bytes of the row are returned. `recent` is null for a leaf of metrics, and then `series_nos` are
  // those that may have a row on these ticks.
  std::int64_t AddTicks(const RowPlace& place, const RecentPlace* recent, const EncodedTicks& ticks,
                        const std::vector<std::int32_t>& series_nos = {});
  std::int64_t AddColumn(const RowPlace& place, const RecentPlace* recent,
                         const EncodedColumn& column);

  // Of both buffers.
  std::size_t bytes() const { return metrics_.bytes() + ticks_.bytes(); }
  // Copies what was added, inside the caller's transaction; empty afterwards.
  absl::Status Send(PgConnection& connection);

 private:
  RowCopy(SqlText metrics_sql, SqlText ticks_sql, int extra_metrics, int extra_ticks);

  SqlText metrics_sql_;
  SqlText ticks_sql_;
  PgCopyRows metrics_;
  PgCopyRows ticks_;
};

// "metrics_k0_20260101": the leaf of a keep class and day.
std::string LeafName(std::string_view table, std::int16_t keep_class, std::int32_t received_day);
// The same as SQL has it: stepwell."metrics_k0_20260101".
SqlText LeafTable(std::string_view table, std::int16_t keep_class, std::int32_t received_day);

}  // namespace stepwell
