// Rows of recent and recent_ticks as the merger reads them: encoded, and what places them. Columns
// are those of pg_row_copy.h, behind a few of their own. Pure functions over a result.
#pragma once

#include "storage/pg_result.h"
#include "storage/row_place.h"

namespace stepwell {

// Columns: segment, fold_no, received_time_us, series_nos, then kTicksColumnList.
RecentTicksRow ReadRecentTicks(const PgResult& result, int row);
// Columns: kMetricsColumnList.
RecentColumnRow ReadRecentColumn(const PgResult& result, int row);

}  // namespace stepwell
