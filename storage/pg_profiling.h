// What is stored of a trial's profiling, as columns of a statement that calls stepwell.trials `t`.
#pragma once

#include "storage/model.h"
#include "storage/pg_result.h"

// No name of a group holds a control character.
#define STEPWELL_TRIAL_PROFILING                                    \
  "t.profiling_revision, t.profiling_on, t.profiling_interval_us, " \
  "array_to_string(t.profiling_groups, E'\\n')"

namespace stepwell {

// The columns above, of which `column` is the first.
TrialProfiling ProfilingAt(const PgResult& result, int row, int column);

}  // namespace stepwell
