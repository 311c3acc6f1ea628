// TraceSummary: where the time of the steps in a stored trace went, in the words of the wire contract. Stands between
// TraceGrpcService and base/trace's StepBreakdown. Functions.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "base/trace/step_breakdown.h"
#include "server/trace_merging.h"
#include "stepwell/v1/trace.pb.h"
#include "storage/trace_store.h"

namespace stepwell {

// Events of one summary: at 40 bytes each 160 MB while they are read; as they are counted some four times that where all are a
// device's, each launched on its own (by the sizes of what is held). A cap lets through traces with more; those are said.
inline constexpr std::size_t kSummaryEventsMax = 4'000'000;

// kNotFound; kFailedPrecondition: not whole; kInvalidArgument: no trace in Chrome's JSON.
[[nodiscard]] absl::StatusOr<pb::SummarizeTraceResponse> SummarizeStored(
    TraceStore& store, const TrialSelector& trial, const ProjectFilter& projects,
    std::int32_t trace_no, std::int32_t steps_max, const MayGoOn& may_go_on);

pb::TraceStepTimes ToWire(const StepTimes& step);

}  // namespace stepwell
