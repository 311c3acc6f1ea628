#include "client/cli/trace_pages.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cli/trace_words.h"

namespace stepwell::cli {

absl::StatusOr<v1::ListTracesResponse> ReadTraces(MasterClient& master, const v1::TrialRef& trial) {
  v1::ListTracesRequest request;
  *request.mutable_trial() = trial;
  request.set_page_size(1000);
  google::protobuf::RepeatedPtrField<v1::Trace> traces;
  while (true) {
    absl::StatusOr<v1::ListTracesResponse> page = master.ListTraces(request);
    if (!page.ok()) return page.status();
    traces.MergeFrom(page->traces());
    request.set_after_trace_no(page->next_after_trace_no());
    if (request.after_trace_no() > 0) continue;
    page->mutable_traces()->Swap(&traces);
    return page;
  }
}

absl::StatusOr<std::int32_t> ParseTraceNo(const std::string& text) {
  std::int32_t trace_no = 0;
  if (absl::SimpleAtoi(text, &trace_no) && trace_no > 0) return trace_no;
  return absl::InvalidArgumentError(
      absl::StrCat("TRACE is '", text, "'; allowed: its number, 1 and above"));
}

absl::StatusOr<std::vector<v1::Trace>> ChooseTraces(const v1::ListTracesResponse& list,
                                                    const std::vector<std::int32_t>& trace_nos) {
  std::vector<v1::Trace> chosen;
  for (const v1::Trace& trace : list.traces()) {
    if (trace_nos.empty() && trace.state() == v1::TRACE_STATE_COMPLETE) chosen.push_back(trace);
  }
  for (const std::int32_t trace_no : trace_nos) {
    const auto found =
        std::find_if(list.traces().begin(), list.traces().end(),
                     [&](const v1::Trace& trace) { return trace.trace_no() == trace_no; });
    if (found == list.traces().end()) {
      return absl::NotFoundError(absl::StrCat("there is no trace ", trace_no,
                                              "; 'stepwell trace list' shows which there are"));
    }
    if (found->state() != v1::TRACE_STATE_COMPLETE) {
      return absl::FailedPreconditionError(
          absl::StrCat("trace ", trace_no, " is not whole: ", TraceStateText(*found)));
    }
    chosen.push_back(*found);
  }
  if (chosen.empty()) return absl::NotFoundError("the trial has no whole trace");
  return chosen;
}

}  // namespace stepwell::cli
