// TraceCounters: what a trial's machines measured while its traces ran, as counters of a merge. Stands between
// TraceGrpcService, which merges, and QueryReads, which has the samples. A function; blocks on the database.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/trace/interval_set.h"
#include "base/trace/merge_plan.h"
#include "base/trace/merge_writer.h"
#include "server/query_reads.h"
#include "stepwell/v1/model.pb.h"

namespace stepwell {

// Samples in one merge at most; a trace of a day has millions.
inline constexpr std::int64_t kTraceCountsMax = 2'000'000;

struct TraceCounters {
  std::int32_t series_count = 0;
  std::string note = {};  // why some are missing, for people
};

// The times to read, of the windows of a merge: a second more on both sides, so that a sampler of 1 Hz has a value on
// either; joined where they are close. Microseconds, in order, at most `count_max`.
std::vector<v1::TimeRange> CounterRanges(const std::vector<Interval>& windows_ns,
                                         std::size_t count_max);
// "machine node-a", and "cpu_util_core core=3": what a series is called among the rows of a trace.
MergedCounter CounterOf(const v1::Series& series);

// Of the windows that the writer has written, each machine's where its traces are. A failure to read is a note, not a failed
// merge; one to write ends it.
[[nodiscard]] absl::StatusOr<TraceCounters> AddTraceCounters(const QueryReads& reads,
                                                             const v1::TrialRef& trial,
                                                             const ReadCall& call,
                                                             const MergePlan& plan,
                                                             MergeWriter& writer);

}  // namespace stepwell
