#include "client/cli/stored_trace.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status_macros.h"

namespace stepwell::cli {

std::string StoredTraceLabel(const v1::Trace& trace) {
  return absl::StrCat("trace ", trace.trace_no(), " (", trace.header().name(), ")");
}

TraceSource SourceOfStored(MasterClient& master, v1::TrialRef trial, v1::Trace trace) {
  return [&master, trial = std::move(trial),
          trace = std::move(trace)](const TakeBytes& take) -> absl::Status {
    v1::GetTraceRequest request;
    *request.mutable_trial() = trial;
    request.set_trace_no(trace.trace_no());
    Sha256 sha;
    absl::Status taken;
    STEPWELL_RETURN_IF_ERROR(master.GetTrace(request, [&](const v1::GetTraceResponse& message) {
      if (!message.has_part()) return true;
      sha.Feed(message.part().data());
      taken = take(message.part().data());
      return taken.ok();
    }));
    STEPWELL_RETURN_IF_ERROR(taken);
    if (sha.Finish() != trace.header().sha256()) {
      return absl::DataLossError(
          absl::StrCat("trace ", trace.trace_no(), ": these are not the bytes that were uploaded"));
    }
    return absl::OkStatus();
  };
}

}  // namespace stepwell::cli
