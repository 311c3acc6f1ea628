// TraceWire: traces in the words of the wire contract, and back. Stands between TraceGrpcService and
// TraceStore. Pure functions.
#pragma once

#include "server/complaint.h"
#include "server/wire.h"
#include "stepwell/v1/trace.pb.h"
#include "storage/trace_store.h"

namespace stepwell {

struct TraceBeginning {
  TrialSelector trial = {};
  StoredTraceHeader header = {};
};
// Reasons: TRIAL_REF, HEADER, NAME_BYTES and the like. Messages begin with the field's path.
MaybeComplaint CheckTraceUpload(const pb::TraceUpload& upload_untrusted, TraceBeginning& beginning);
// `trace_no` of a request that names one trace.
MaybeComplaint CheckTraceRef(const pb::TrialRef& ref_untrusted, std::int32_t trace_no_untrusted,
                             TrialSelector& trial);

pb::Trace ToWire(const TraceRecord& trace);

}  // namespace stepwell
