#include "server/trace_merging.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace stepwell {
namespace {

constexpr std::int32_t kPage = 1000;

// Of those that are read here; Perfetto's are, as far as they hold track events.
bool IsMergeable(const TraceRecord& trace) {
  return trace.header.format == StoredTraceFormat::kChromeJson ||
         trace.header.format == StoredTraceFormat::kPerfetto;
}

// Names of processes that a merge keeps, of all its inputs: of hostile ones each has thousands.
constexpr std::size_t kNamesMax = 100'000;

absl::Status CheckWhole(const TraceRecord& trace) {
  if (trace.state == StoredTraceState::kComplete) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "trace ", trace.trace_no, " ('", trace.header.name, "') is not whole: ", trace.received_bytes,
      " of ", trace.header.byte_count, " bytes are there"));
}

absl::StatusOr<std::vector<TraceRecord>> AllOf(TraceStore& store, const TrialSelector& trial,
                                               const ProjectFilter& projects) {
  std::vector<TraceRecord> chosen;
  std::int32_t after = 0;
  for (bool more = true; more;) {
    STEPWELL_ASSIGN_OR_RETURN(TraceList list, store.List(trial, projects, after, kPage));
    for (TraceRecord& each : list.traces) {
      after = each.trace_no;
      const bool is_input = each.state == StoredTraceState::kComplete && IsMergeable(each);
      if (is_input) chosen.push_back(std::move(each));
    }
    more = list.more;
  }
  if (chosen.empty()) {
    return absl::FailedPreconditionError(
        "the trial has no whole trace in Chrome's JSON or Perfetto's form");
  }
  return chosen;
}

std::string LabelOf(const TraceRecord& trace) {
  return absl::StrCat("trace ", trace.trace_no, " (", trace.header.name, ")");
}

MergeInput InputOf(const TraceRecord& trace) {
  MergeInput input;
  input.label = LabelOf(trace);
  const std::optional<std::int32_t> of_name = RankOfTraceName(trace.header.name);
  input.rank = trace.header.rank ? trace.header.rank : of_name;
  input.is_rank_of_name = of_name.has_value() && input.rank == of_name;
  input.cycle = CycleOfTraceName(trace.header.name);
  input.machine = trace.header.machine;
  return input;
}

}  // namespace

TraceSource SourceOfStored(TraceStore& store, TraceRecord trace, std::int64_t offset,
                           MayGoOn may_go_on) {
  return [&store, trace = std::move(trace), offset,
          may_go_on = std::move(may_go_on)](const TakeBytes& take) -> absl::Status {
    for (std::int64_t at = offset; at < trace.header.byte_count;) {
      STEPWELL_RETURN_IF_ERROR(may_go_on());
      STEPWELL_ASSIGN_OR_RETURN(const std::string part,
                                store.ReadPart(trace, at / kTracePartBytes));
      const auto skipped = static_cast<std::size_t>(at % kTracePartBytes);
      if (part.size() <= skipped) {
        return absl::DataLossError(absl::StrCat("trace ", trace.trace_no, " ends at byte ", at,
                                                " of ", trace.header.byte_count));
      }
      const std::string_view bytes = std::string_view(part).substr(skipped);
      STEPWELL_RETURN_IF_ERROR(take(bytes));
      at += static_cast<std::int64_t>(bytes.size());
    }
    return absl::OkStatus();
  };
}

absl::StatusOr<std::vector<TraceRecord>> ChooseTraces(TraceStore& store, const TrialSelector& trial,
                                                      const ProjectFilter& projects,
                                                      const std::vector<std::int32_t>& trace_nos) {
  if (trace_nos.size() > static_cast<std::size_t>(kMergeInputsMax)) {
    return absl::InvalidArgumentError(absl::StrCat("trace_nos has ", trace_nos.size(),
                                                   " entries; allowed: up to ", kMergeInputsMax));
  }
  std::vector<TraceRecord> chosen;
  if (trace_nos.empty()) {
    STEPWELL_ASSIGN_OR_RETURN(chosen, AllOf(store, trial, projects));
    if (chosen.size() <= static_cast<std::size_t>(kMergeInputsMax)) return chosen;
    return absl::InvalidArgumentError(
        absl::StrCat("the trial has ", chosen.size(), " traces; name up to ", kMergeInputsMax));
  }
  std::set<std::int32_t> seen;
  for (const std::int32_t trace_no : trace_nos) {
    if (!seen.insert(trace_no).second) {
      return absl::InvalidArgumentError(absl::StrCat("trace_nos has ", trace_no, " twice"));
    }
    STEPWELL_ASSIGN_OR_RETURN(TraceRecord trace, store.Find(trial, projects, trace_no));
    STEPWELL_RETURN_IF_ERROR(CheckWhole(trace));
    if (!IsMergeable(trace)) {
      return absl::InvalidArgumentError(
          absl::StrCat("trace ", trace_no, " ('", trace.header.name,
                       "') is neither in Chrome's JSON nor in Perfetto's form; allowed: those"));
    }
    chosen.push_back(std::move(trace));
  }
  return chosen;
}

absl::StatusOr<PlacedTraces> PlaceTraces(TraceStore& store, const std::vector<TraceRecord>& traces,
                                         MergeSieve::Asked asked, MergeAlignment alignment,
                                         const MayGoOn& may_go_on) {
  PlacedTraces placed;
  MergeSieve sieve(asked, alignment);
  std::vector<MergeInput> inputs;
  std::set<std::string> cut;
  std::size_t name_count = 0;
  for (const TraceRecord& trace : traces) {
    MergeInput input = InputOf(trace);
    STEPWELL_ASSIGN_OR_RETURN(const std::optional<TraceForm> form,
                              sieve.Scan(SourceOfStored(store, trace, 0, may_go_on), input));
    if (!form) continue;
    name_count += input.origin.process_names.size();
    if (name_count > kNamesMax) input.origin.process_names.clear();
    if (form->is_cut) cut.insert(input.label);
    placed.by_label.emplace(input.label, trace);
    inputs.push_back(std::move(input));
  }
  STEPWELL_ASSIGN_OR_RETURN(placed.plan, std::move(sieve).Plan(inputs));
  if (name_count > kNamesMax) {
    placed.plan.notes.push_back(absl::StrCat("the traces name ", name_count,
                                             " processes; those beyond ", kNamesMax,
                                             " have the rank's name alone"));
  }
  for (const PlacedInput& input : placed.plan.inputs) {
    const TraceRecord& trace = placed.by_label.at(input.label);
    pb::MergedTrace& wire = *placed.placement.add_inputs();
    wire.set_trace_no(trace.trace_no);
    wire.set_name(trace.header.name);
    wire.set_rank(input.rank);
    wire.set_shift_ns(input.shift_ns);
    if (input.error_ns) wire.set_clock_error_ns(*input.error_ns);
    if (input.drift != 0) wire.set_drift_us_per_s(input.drift * 1e6);
    wire.set_is_cut(cut.contains(input.label));
  }
  for (const std::string& note : placed.plan.notes) placed.placement.add_notes(note);
  return placed;
}

}  // namespace stepwell
