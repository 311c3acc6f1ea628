#include "storage/pg_profiling.h"

#include "absl/strings/str_split.h"

namespace stepwell {

TrialProfiling ProfilingAt(const PgResult& result, int row, int column) {
  TrialProfiling profiling;
  profiling.revision = result.Int64(row, column);
  profiling.on = result.Bool(row, column + 1);
  profiling.interval_us = result.Int64(row, column + 2);
  const absl::string_view groups(result.Text(row, column + 3).data(),
                                 result.Text(row, column + 3).size());
  profiling.metric_groups = absl::StrSplit(groups, '\n', absl::SkipEmpty());
  return profiling;
}

}  // namespace stepwell
