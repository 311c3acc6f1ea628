// TraceMerging: traces of a trial as one, read part by part from the store, twice. Memory does not grow with
// their bytes. Stands between TraceGrpcService and base/trace. Functions.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/trace/merge_sieve.h"
#include "base/trace/trace_reading.h"
#include "server/wire.h"
#include "stepwell/v1/trace.pb.h"
#include "storage/trace_store.h"

namespace stepwell {

// At most so many inputs.
inline constexpr int kMergeInputsMax = 4096;

// Asked between parts; not OK ends the reading with it.
using MayGoOn = std::function<absl::Status()>;
// From `offset` on.
TraceSource SourceOfStored(TraceStore& store, TraceRecord trace, std::int64_t offset,
                           MayGoOn may_go_on);

// The traces that a merge means. kInvalidArgument: too many, one twice, one that is no JSON; kNotFound;
// kFailedPrecondition: one that is not whole, or there is none at all.
[[nodiscard]] absl::StatusOr<std::vector<TraceRecord>> ChooseTraces(
    TraceStore& store, const TrialSelector& trial, const ProjectFilter& projects,
    const std::vector<std::int32_t>& trace_nos);

struct PlacedTraces {
  MergePlan plan = {};
  pb::TracePlacement placement = {};
  std::map<std::string, TraceRecord> by_label = {};
};
// By MergeSieve's rules: of all of a trial what cannot be unpacked or placed is left out, and told. What the store answers is
// a failure in any case.
[[nodiscard]] absl::StatusOr<PlacedTraces> PlaceTraces(TraceStore& store,
                                                       const std::vector<TraceRecord>& traces,
                                                       MergeSieve::Asked asked,
                                                       MergeAlignment alignment,
                                                       const MayGoOn& may_go_on);

}  // namespace stepwell
