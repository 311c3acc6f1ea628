#include "server/trace_summary.h"

#include <vector>

#include "base/status_macros.h"
#include "server/trace_wire.h"

namespace stepwell {

pb::TraceStepTimes ToWire(const StepTimes& step) {
  const auto of = [&](StepClass step_class) {
    return step.class_ns[static_cast<std::size_t>(step_class)];
  };
  pb::TraceStepTimes wire;
  wire.set_name(step.name);
  wire.set_length_ns(step.length_ns());
  wire.set_kernel_ns(of(StepClass::kKernel));
  wire.set_memcpy_ns(of(StepClass::kMemcpy));
  wire.set_memset_ns(of(StepClass::kMemset));
  wire.set_communication_ns(of(StepClass::kCommunication));
  wire.set_runtime_ns(of(StepClass::kRuntime));
  wire.set_data_loader_ns(of(StepClass::kDataLoader));
  wire.set_processor_ns(of(StepClass::kProcessor));
  wire.set_other_ns(of(StepClass::kOther));
  wire.set_computing_ns(step.computing_ns);
  wire.set_communicating_ns(step.communicating_ns);
  wire.set_overlap_ns(step.overlap_ns);
  if (step.idle_ns) wire.set_idle_ns(*step.idle_ns);
  return wire;
}

absl::StatusOr<pb::SummarizeTraceResponse> SummarizeStored(
    TraceStore& store, const TrialSelector& trial, const ProjectFilter& projects,
    std::int32_t trace_no, std::int32_t steps_max, const MayGoOn& may_go_on) {
  // As a merge of this one: whole, and in Chrome's JSON.
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<TraceRecord> chosen,
                            ChooseTraces(store, trial, projects, {trace_no}));
  const TraceRecord& trace = chosen.front();
  StepBreakdown breakdown({.events_max = kSummaryEventsMax});
  TraceEventParser parser;
  std::int64_t bad_count = 0;
  STEPWELL_ASSIGN_OR_RETURN(const TraceForm form,
                            ReadTrace(SourceOfStored(store, trace, 0, may_go_on),
                                      {.event =
                                           [&](std::string_view json) {
                                             if (parser.Parse(json)) {
                                               breakdown.TakeEvent(parser.event());
                                             } else {
                                               ++bad_count;
                                             }
                                             return absl::OkStatus();
                                           },
                                       .member = {}}));
  const StepReport report = breakdown.Finish();
  pb::SummarizeTraceResponse response;
  response.set_trial_id(Value(trace.trial_id));
  *response.mutable_header() = ToWire(trace).header();
  for (const StepTimes& step : report.steps) {
    if (response.steps_size() < steps_max) *response.add_steps() = ToWire(step);
  }
  response.set_step_count(std::ssize(report.steps));
  *response.mutable_total() = ToWire(SumOf(report));
  response.set_steps_left_out(report.steps_left_out);
  response.set_has_device(report.has_device);
  response.set_device_busy_ns(report.device_busy_ns);
  response.set_device_span_ns(report.device_span_ns);
  response.set_bad_count(bad_count + form.passed_over);
  response.set_events_over_bound(report.events_over_bound);
  response.set_is_cut(form.is_cut);
  return response;
}

}  // namespace stepwell
