#include "client/cli/profile_reading.h"

#include <ostream>

#include "base/status_macros.h"
#include "base/trace/trace_event.h"
#include "base/trace/trace_origin.h"
#include "client/cli/terminal.h"
#include "client/cli/units.h"

namespace stepwell::cli {

absl::StatusOr<ReadProfile> ReadProfileOf(const TraceSource& source,
                                          StepBreakdown::Options options) {
  ReadProfile profile;
  StepBreakdown breakdown(options);
  TraceScan scan;  // of members alone: profilers tell their rank there
  TraceEventParser parser;
  STEPWELL_ASSIGN_OR_RETURN(
      const TraceForm form,
      ReadTrace(source, {.event =
                             [&](std::string_view json) {
                               if (parser.Parse(json)) {
                                 breakdown.TakeEvent(parser.event());
                               } else {
                                 ++profile.bad_count;
                               }
                               return absl::OkStatus();
                             },
                         .member =
                             [&](std::string_view name, std::string_view json) {
                               scan.TakeMember(name, json);
                               return absl::OkStatus();
                             }}));
  profile.report = breakdown.Finish();
  profile.rank = scan.Finish().rank;
  profile.bad_count += form.passed_over;
  profile.is_cut = form.is_cut;
  return profile;
}

void TellLeftOut(const ReadProfile& profile, const std::string& of, std::ostream& err) {
  const StepReport& report = profile.report;
  const std::string where = Printable(of);
  if (profile.is_cut) {
    err << "stepwell: the trace" << where << " ends too early; what it has is counted\n";
  }
  if (profile.bad_count > 0) {
    err << "stepwell: " << Plural(profile.bad_count, "thing") << where
        << " that is no event left out\n";
  }
  if (report.steps_left_out > 0) {
    err << "stepwell: " << Plural(report.steps_left_out, "step") << " at the end" << where
        << " left out: recording stopped before the device's part\n";
  }
  if (report.events_over_bound > 0) {
    err << "stepwell: " << Plural(report.events_over_bound, "event") << where
        << " beyond what is held at once not counted\n";
  }
}

void TellNoSteps(const std::string& name, std::ostream& err) {
  err << "stepwell: " << Printable(name)
      << " has no step and no operator of PyTorch's profiler; of a recorded run 'stepwell report "
         "TRIAL' tells\n";
}

}  // namespace stepwell::cli
