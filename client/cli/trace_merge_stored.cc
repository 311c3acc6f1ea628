#include "client/cli/trace_merge_stored.h"

#include <memory>
#include <optional>
#include <ostream>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/trace/merge_plan.h"
#include "base/trace/merge_sieve.h"
#include "client/cli/export_output.h"
#include "client/cli/merge_words.h"
#include "client/cli/not_found.h"
#include "client/cli/progress.h"
#include "client/cli/proto_json.h"
#include "client/cli/stored_trace.h"
#include "client/cli/terminal.h"
#include "client/cli/trace_archive.h"
#include "client/cli/trace_merge_output.h"
#include "client/cli/trace_pages.h"
#include "client/cli/trace_words.h"
#include "client/cli/units.h"

namespace stepwell::cli {
namespace {

constexpr std::size_t kTracesMax = 4096;

// Which traces, and how they are placed.
absl::StatusOr<v1::MergeTracesRequest> ChoiceOf(const CommandOptions& options) {
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
  return request;
}

absl::StatusOr<v1::MergeTracesRequest> RequestOf(const CommandOptions& options) {
  STEPWELL_ASSIGN_OR_RETURN(v1::MergeTracesRequest request, ChoiceOf(options));
  STEPWELL_ASSIGN_OR_RETURN(const v1::TraceFormat format,
                            ParseMergeFormat(options.Text("format"), options.Text("output")));
  request.set_format(format);
  request.set_without_system_metrics(options.Has("without-system-metrics"));
  request.set_gzip(absl::EndsWith(options.Text("output"), ".gz"));
  return request;
}

void TellPlacement(const v1::TracePlacement& placement, v1::TraceAlignment alignment,
                   Streams streams) {
  std::vector<std::pair<std::int32_t, std::optional<std::int64_t>>> errors;
  for (const v1::MergedTrace& input : placement.inputs()) {
    errors.emplace_back(input.rank(), input.has_clock_error_ns()
                                          ? std::optional(input.clock_error_ns())
                                          : std::nullopt);
  }
  TellInputs(placement, streams.err);
  // Who has each begin where the first does has asked for no clock.
  if (alignment == v1::TRACE_ALIGNMENT_START) return;
  if (const std::string text = ClocksText(errors); !text.empty()) {
    streams.err << "stepwell: " << text << "\n";
  }
}

bool IsMergeable(const v1::Trace& trace) {
  return trace.header().format() == v1::TRACE_FORMAT_CHROME_JSON ||
         trace.header().format() == v1::TRACE_FORMAT_PERFETTO;
}

// As the master chooses for a merge.
absl::StatusOr<std::vector<v1::Trace>> ChooseMergeable(MasterClient& master,
                                                       const v1::MergeTracesRequest& request) {
  STEPWELL_ASSIGN_OR_RETURN(const v1::ListTracesResponse list, ReadTraces(master, request.trial()));
  const std::vector<std::int32_t> trace_nos(request.trace_nos().begin(), request.trace_nos().end());
  STEPWELL_ASSIGN_OR_RETURN(std::vector<v1::Trace> traces, ChooseTraces(list, trace_nos));
  if (trace_nos.empty()) {
    std::erase_if(traces, [](const v1::Trace& trace) { return !IsMergeable(trace); });
  }
  if (traces.empty() || traces.size() > kTracesMax) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the trial has ", traces.size(),
        " whole traces in Chrome's JSON or Perfetto's form; allowed: 1 to ", kTracesMax));
  }
  for (const v1::Trace& trace : traces) {
    if (IsMergeable(trace)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        StoredTraceLabel(trace), " is neither in Chrome's JSON nor in Perfetto's form"));
  }
  return traces;
}

MergeInput InputOf(const v1::Trace& trace) {
  const v1::TraceHeader& header = trace.header();
  MergeInput input;
  input.label = StoredTraceLabel(trace);
  const std::optional<std::int32_t> of_name = RankOfTraceName(header.name());
  input.rank = header.has_rank() ? std::optional(header.rank()) : of_name;
  input.is_rank_of_name = of_name.has_value() && input.rank == of_name;
  input.cycle = CycleOfTraceName(header.name());
  input.machine = header.machine();
  return input;
}

struct StoredArchive {
  MergePlan plan;
  std::vector<ArchivedTrace> traces;
};

absl::StatusOr<StoredArchive> PlaceStored(MasterClient& master,
                                          const v1::MergeTracesRequest& request,
                                          std::ostream& err) {
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<v1::Trace> traces, ChooseMergeable(master, request));
  MergeSieve sieve(
      request.trace_nos().empty() ? MergeSieve::Asked::kAll : MergeSieve::Asked::kThese,
      request.alignment() == v1::TRACE_ALIGNMENT_START ? MergeAlignment::kStart
                                                       : MergeAlignment::kClock);
  StoredArchive archive;
  std::vector<MergeInput> inputs;
  for (const v1::Trace& trace : traces) {
    const v1::TraceHeader& header = trace.header();
    MergeInput input = InputOf(trace);
    TraceSource source = SourceOfStored(master, request.trial(), trace);
    STEPWELL_ASSIGN_OR_RETURN(const std::optional<TraceForm> form, sieve.Scan(source, input));
    if (!form) continue;
    if (form->is_cut) {
      err << "stepwell: " << Printable(input.label) << " ends too early; it is taken as it is\n";
    }
    archive.traces.push_back({.name = header.name(),
                              .clock = form->clock,
                              .byte_count = header.byte_count(),
                              .source = std::move(source)});
    inputs.push_back(std::move(input));
  }
  STEPWELL_ASSIGN_OR_RETURN(archive.plan, std::move(sieve).Plan(inputs));
  return archive;
}

}  // namespace

int ArchiveStored(const CommandOptions& options, Streams streams) {
  const auto request = ChoiceOf(options);
  if (!request.ok()) return options.UsageError(request.status(), streams);
  const Progress progress("archiving traces");
  MasterClient master(options.master());
  const auto archive = PlaceStored(master, *request, streams.err);
  if (!archive.ok()) {
    return ReportTrialFailure(archive.status(), request->trial(), master, options.server(),
                              streams);
  }
  return WriteMergeTo(
      {.path = options.Text("output"),
       .is_json = options.json(),
       .is_archive = true,
       .noun = "trace"},
      archive->plan,
      [&](const TakeBytes& take) -> absl::StatusOr<MergeCounts> {
        STEPWELL_RETURN_IF_ERROR(WriteTraceArchive(archive->plan, archive->traces, take));
        return MergeCounts();
      },
      streams);
}

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
  TellPlacement(placement, request->alignment(), streams);
  TellLeftOut(totals, streams.err);
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
