#include "client/cli/trace_merge_stored.h"

#include <memory>
#include <optional>
#include <ostream>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/cli/export_output.h"
#include "client/cli/not_found.h"
#include "client/cli/progress.h"
#include "client/cli/proto_json.h"
#include "client/cli/terminal.h"
#include "client/cli/trace_pages.h"
#include "client/cli/trace_words.h"
#include "client/cli/units.h"

namespace stepwell::cli {
namespace {

absl::StatusOr<v1::MergeTracesRequest> RequestOf(const CommandOptions& options) {
  v1::MergeTracesRequest request;
  STEPWELL_ASSIGN_OR_RETURN(*request.mutable_trial(),
                            ParseTrialRef(options.Text("trial"), options.project()));
  for (const char* name : {"rank", "shift", "machine", "one-machine"}) {
    if (options.Has(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", name, " goes with FILEs, not with --trial"));
    }
  }
  for (const std::string& text : options.arguments()) {
    STEPWELL_ASSIGN_OR_RETURN(const std::int32_t trace_no, ParseTraceNo(text));
    request.add_trace_nos(trace_no);
  }
  if (options.Text("align") == "start") request.set_alignment(v1::TRACE_ALIGNMENT_START);
  STEPWELL_ASSIGN_OR_RETURN(const v1::TraceFormat format,
                            ParseMergeFormat(options.Text("format"), options.Text("output")));
  request.set_format(format);
  request.set_without_system_metrics(options.Has("without-system-metrics"));
  request.set_gzip(absl::EndsWith(options.Text("output"), ".gz"));
  return request;
}

void TellPlacement(const v1::TracePlacement& placement, Streams streams) {
  std::vector<std::pair<std::int32_t, std::optional<std::int64_t>>> errors;
  for (const v1::MergedTrace& input : placement.inputs()) {
    errors.emplace_back(input.rank(), input.has_clock_error_ns()
                                          ? std::optional(input.clock_error_ns())
                                          : std::nullopt);
    if (!input.is_cut()) continue;
    streams.err << "stepwell: trace " << input.trace_no() << " (" << Printable(input.name())
                << ") ends too early; what it has is taken\n";
  }
  for (const std::string& note : placement.notes()) {
    streams.err << "stepwell: " << Printable(note) << "\n";
  }
  if (const std::string text = ClocksText(errors); !text.empty()) {
    streams.err << "stepwell: " << text << "\n";
  }
}

}  // namespace

int MergeStored(const CommandOptions& options, Streams streams) {
  const auto request = RequestOf(options);
  if (!request.ok()) return options.UsageError(request.status(), streams);
  const std::string path = options.Text("output");
  absl::StatusOr<std::unique_ptr<ExportOutput>> output = ExportOutput::ToStream(streams.out);
  if (!path.empty()) output = ExportOutput::ToFile(path);
  if (!output.ok()) {
    streams.err << "stepwell: " << output.status().message() << "\n";
    return kExitFailed;
  }
  MasterClient master(options.master());
  v1::TracePlacement placement;
  v1::MergeTotals totals;
  absl::Status written;
  absl::Status merged;
  {
    const Progress progress("merging traces");
    merged = master.MergeTraces(*request, [&](const v1::MergeTracesResponse& message) {
      if (message.has_placement()) placement = message.placement();
      if (message.has_totals()) totals = message.totals();
      if (!message.data().empty()) written = (*output)->Write(message.data());
      return written.ok();
    });
  }
  if (!merged.ok()) {
    return ReportTrialFailure(merged, request->trial(), master, options.server(), streams);
  }
  // Whoever reads has had enough.
  if (absl::IsOutOfRange(written)) return kExitOk;
  if (written.ok()) written = (*output)->Finish();
  if (!written.ok()) {
    streams.err << "stepwell: " << Printable(std::string(written.message())) << "\n";
    return kExitFailed;
  }
  TellPlacement(placement, streams);
  if (totals.left_out_count() > 0) {
    streams.err << "stepwell: " << Plural(totals.left_out_count(), "event")
                << " without a time or beyond a bound left out\n";
  }
  if (!totals.counters_note().empty()) {
    streams.err << "stepwell: " << Printable(totals.counters_note()) << "\n";
  }
  if (options.json() && !path.empty()) {
    nlohmann::ordered_json json = ToJson(totals);
    json["inputs"] = ToJson(placement)["inputs"];
    streams.out << json.dump() << "\n";
  } else if (!path.empty()) {
    streams.err << Plural(totals.event_count(), "event") << " of "
                << Plural(placement.inputs_size(), "trace");
    if (totals.counter_count() > 0) {
      streams.err << ", with " << CountText(totals.counter_count()) << " series of system metrics,";
    }
    streams.err << " are in " << path << "\n";
  }
  return kExitOk;
}

}  // namespace stepwell::cli
