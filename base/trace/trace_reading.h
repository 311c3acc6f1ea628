// TraceReading: the ways through a trace, whatever it comes from: a file, parts in a database. A source hands on
// its bytes, gzip or not, each time from the first on; none is ever whole in memory. Functions.
//
//   STEPWELL_ASSIGN_OR_RETURN(ScannedTrace scanned, ScanTrace(source));          // first pass over each input
//   STEPWELL_ASSIGN_OR_RETURN(MergePlan plan, PlanMerge(inputs, alignment));
//   STEPWELL_ASSIGN_OR_RETURN(MergeCounts counts, MergeTraces(plan, source_of, form, take)); // second pass
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/trace/merge_plan.h"
#include "base/trace/merge_writer.h"
#include "base/trace/perfetto_splitter.h"
#include "base/trace/trace_bytes.h"
#include "base/trace/trace_origin.h"
#include "base/trace/trace_splitter.h"

namespace stepwell {

// Calls `take` until there is no more, or it says no.
using TraceSource = std::function<absl::Status(const TakeBytes& take)>;

// What is missing at the end is no failure: the form says that it was cut. `slice_form`: of those in Perfetto's form.
// The takers are called one after the other, of a large trace on a thread of its own while `source` reads on.
[[nodiscard]] absl::StatusOr<TraceForm> ReadTrace(const TraceSource& source,
                                                  TraceSplitter::Takers takers,
                                                  SliceForm slice_form = SliceForm::kWhole);

struct ScannedTrace {
  TraceOrigin origin = {};
  TraceForm form = {};
};
[[nodiscard]] absl::StatusOr<ScannedTrace> ScanTrace(const TraceSource& source);

// What a merge is written as.
enum class MergeForm {
  kChrome,         // JSON
  kPerfetto,       // protobuf, packed in itself
  kPerfettoPlain,  // protobuf; for what is packed as a whole
};

struct MergeCounts {
  std::int64_t written = 0;
  std::int64_t left_out = 0;
};
// `source_of` is asked for each input of the plan, in its order; then `add_counters`, where there is one.
[[nodiscard]] absl::StatusOr<MergeCounts> MergeTraces(
    const MergePlan& plan, const std::function<TraceSource(const PlacedInput&)>& source_of,
    MergeForm form, const TakeBytes& take,
    const std::function<absl::Status(MergeWriter&)>& add_counters = {});

// 3 of "ep0-ba7-rank3.json" and "rank3.7.pt.trace.json.gz", in the last part of a path.
std::optional<std::int32_t> RankOfTraceName(std::string_view path);
// "ep0-ba7" of the first of them; empty of names without.
std::string CycleOfTraceName(std::string_view path);

}  // namespace stepwell
