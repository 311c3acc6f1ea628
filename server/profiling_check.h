// ProfilingCheck: whether a SetProfiling can be taken. Pure.
#pragma once

#include "server/complaint.h"
#include "server/wire.h"
#include "stepwell/v1/admin.pb.h"
#include "storage/ingest_store.h"

namespace stepwell {

// Reasons: TRIAL_REF, INTERVAL_RANGE, METRIC_GROUP_COUNT, METRIC_GROUP_BYTES, INVALID_UTF8,
// CONTROL_CHARACTER. Groups come out sorted, each once.
MaybeComplaint CheckSetProfiling(const pb::SetProfilingRequest& request_untrusted,
                                 TrialSelector& trial, TrialProfiling& wanted);

}  // namespace stepwell
