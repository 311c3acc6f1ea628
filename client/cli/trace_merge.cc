// stepwell trace merge: traces of several ranks, cycles and profilers as one, from files to a file.
#include <algorithm>
#include <filesystem>
#include <ostream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/trace/exact_time.h"
#include "base/trace/merge_plan.h"
#include "base/trace/trace_origin.h"
#include "client/cli/command.h"
#include "client/cli/options.h"
#include "client/cli/progress.h"
#include "client/cli/terminal.h"
#include "client/cli/trace_archive.h"
#include "client/cli/trace_merge_output.h"
#include "client/cli/trace_merge_stored.h"
#include "client/cli/trace_words.h"
#include "client/cli/units.h"
#include "client/traces/trace_file.h"

namespace stepwell::cli {
namespace {

constexpr std::size_t kFilesMax = 4096;
constexpr char kExamples[] =
    "\nReads Chrome traces (Composer's, PyTorch's, TensorFlow's and others'; gzip or not) and "
    "writes one, which\n"
    "Perfetto (https://ui.perfetto.dev) opens. A rank is told by the trace itself, its file's name "
    "(rank3) or\n"
    "--rank. Each file is shifted by the barrier that its ranks left together, where it tells one; "
    "files of\n"
    "one machine (--one-machine) are not. The merged trace says by how much each was shifted, and "
    "how far that\n"
    "may be off. A file that ends too early gives what it has. Files are read twice, and never "
    "held in memory.\n"
    "Exits with 0 where a trace was written, 66 where a file cannot be read, 1 where they cannot "
    "be merged.\n"
    "\nExamples:\n"
    "  stepwell trace merge traces/*.json --output merged.json.gz\n"
    "  stepwell trace merge ep0-ba7-rank0.json rank0.7.pt.trace.json.gz --output rank0.json\n"
    "  stepwell trace merge --trial my-run --output my-run.pftrace\n"
    "  stepwell trace merge traces/* --output all.tar\n"
    "  stepwell trace merge --trial my-run --output all.tar\n"
    "  stepwell trace merge a.json b.json --rank a.json=0 --rank b.json=1 --shift b.json=-1500 "
    "--output ab.json\n";

// "FILE=VALUE" of the options of that name, for `file`; the last counts.
std::optional<std::string> OfFile(const CommandOptions& options, const std::string& name,
                                  const std::string& file) {
  std::optional<std::string> found;
  for (const std::string& each : options.Texts(name)) {
    if (each.size() > file.size() && each[file.size()] == '=' && absl::StartsWith(each, file)) {
      found = each.substr(file.size() + 1);
    }
  }
  return found;
}

absl::Status CheckNamed(const CommandOptions& options, const std::string& name) {
  for (const std::string& each : options.Texts(name)) {
    const std::string file = each.substr(0, each.rfind('='));
    const std::vector<std::string>& files = options.arguments();
    if (std::find(files.begin(), files.end(), file) == files.end() || file.size() == each.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--", name, " is '", each, "'; allowed: FILE=", name == "machine" ? "NAME" : "NUMBER",
          ", with a FILE that is merged"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<MergeInput> InputOf(const CommandOptions& options, const std::string& file) {
  MergeInput input;
  input.label = file;
  input.rank = RankOfTraceName(file);
  input.is_rank_of_name = input.rank.has_value();
  input.cycle = CycleOfTraceName(file);
  input.machine = OfFile(options, "machine", file).value_or("");
  if (options.Has("one-machine")) input.machine = "this";
  if (const auto rank = OfFile(options, "rank", file); rank.has_value()) {
    std::int32_t number = 0;
    if (!absl::SimpleAtoi(*rank, &number) || number < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--rank of ", file, " is '", *rank, "'; allowed: 0 and up"));
    }
    input.rank = number;
    input.is_rank_of_name = false;
  }
  if (const auto shift = OfFile(options, "shift", file); shift.has_value()) {
    input.shift_ns = NsOfMicros(*shift);
    if (!input.shift_ns.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat("--shift of ", file, " is '", *shift,
                                                     "'; allowed: microseconds, such as -1500.25"));
    }
  }
  return input;
}

struct Wanted {
  std::vector<MergeInput> inputs;
  MergeAlignment alignment = MergeAlignment::kClock;
  std::string output;
  MergeForm form = MergeForm::kChrome;
  bool is_archive = false;
  std::vector<std::string> clocks = {};  // of each input, once it was read
  bool is_json = false;
};

bool IsArchive(const CommandOptions& options) {
  const std::string format = options.Text("format");
  return format == "archive" || (format.empty() && absl::EndsWith(options.Text("output"), ".tar"));
}

absl::StatusOr<Wanted> WantedOf(const CommandOptions& options) {
  Wanted wanted;
  if (options.arguments().empty()) return absl::InvalidArgumentError("no FILE to merge");
  if (options.arguments().size() > kFilesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.arguments().size(), " files; allowed: up to ", kFilesMax));
  }
  for (const char* name : {"rank", "shift", "machine"}) {
    STEPWELL_RETURN_IF_ERROR(CheckNamed(options, name));
  }
  if (options.Has("machine") && options.Has("one-machine")) {
    return absl::InvalidArgumentError("--machine and --one-machine exclude each other");
  }
  for (const std::string& file : options.arguments()) {
    STEPWELL_ASSIGN_OR_RETURN(wanted.inputs.emplace_back(), InputOf(options, file));
  }
  const std::string align = options.Text("align");
  if (align == "start") {
    wanted.alignment = MergeAlignment::kStart;
  } else if (!align.empty() && align != "clock") {
    return absl::InvalidArgumentError(
        absl::StrCat("--align is '", align, "'; allowed: clock, start"));
  }
  wanted.is_json = options.json();
  wanted.output = options.Text("output");
  if (options.Has("output") && wanted.output.empty()) {
    return absl::InvalidArgumentError("--output is ''; allowed: the name of a file");
  }
  wanted.is_archive = IsArchive(options);
  if (wanted.is_archive) return wanted;
  STEPWELL_ASSIGN_OR_RETURN(const v1::TraceFormat format,
                            ParseMergeFormat(options.Text("format"), wanted.output));
  if (format == v1::TRACE_FORMAT_PERFETTO) {
    wanted.form =
        absl::EndsWith(wanted.output, ".gz") ? MergeForm::kPerfettoPlain : MergeForm::kPerfetto;
  }
  return wanted;
}

absl::Status Scan(Wanted& wanted, std::ostream& err) {
  for (MergeInput& input : wanted.inputs) {
    const auto scanned = ScanTrace(traces::SourceOfFile(input.label));
    if (!scanned.ok()) {
      const absl::Status failed = traces::Named(scanned.status(), input.label);
      if (!absl::IsNotFound(failed)) return failed;
      return absl::NotFoundError(absl::StrCat(failed.message(), TrialHint(input.label)));
    }
    input.origin = scanned->origin;
    // What is said of a file counts by its name alone.
    if (!input.machine.empty()) input.origin.boot_id.clear();
    wanted.clocks.push_back(scanned->form.clock);
    if (scanned->form.is_cut)
      err << "stepwell: " << Printable(input.label) << " ends too early; what it has is taken\n";
    if (scanned->form.passed_over > 0) {
      err << "stepwell: " << Printable(input.label) << ": "
          << Plural(scanned->form.passed_over, "thing")
          << " beside events, or too large, left out\n";
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<MergeCounts> Write(const MergePlan& plan, MergeForm form, const TakeBytes& take) {
  return MergeTraces(
      plan, [](const PlacedInput& input) { return traces::SourceOfFile(input.label); }, form, take);
}

// Each file as it is, behind what tells where it belongs.
absl::Status WriteArchive(const Wanted& wanted, const MergePlan& plan, const TakeBytes& take) {
  std::vector<ArchivedTrace> archived;
  for (const PlacedInput& input : plan.inputs) {
    std::error_code error;
    const auto size = static_cast<std::int64_t>(std::filesystem::file_size(input.label, error));
    if (error) return absl::UnavailableError(absl::StrCat(input.label, ": ", error.message()));
    archived.push_back({.name = input.label,
                        .clock = wanted.clocks[archived.size()],
                        .byte_count = size,
                        .source = traces::SourceOfFile(input.label)});
  }
  return WriteTraceArchive(plan, archived, take);
}

// Events are not counted: none is read twice for it.
absl::StatusOr<MergeCounts> WriteForm(const Wanted& wanted, const MergePlan& plan,
                                      const TakeBytes& take) {
  if (!wanted.is_archive) return Write(plan, wanted.form, take);
  STEPWELL_RETURN_IF_ERROR(WriteArchive(wanted, plan, take));
  return MergeCounts();
}

// A merge has its name once it is whole: the trace that had it before would be gone.
absl::Status CheckOutput(const Wanted& wanted) {
  for (const MergeInput& input : wanted.inputs) {
    std::error_code error;
    if (!wanted.output.empty() && std::filesystem::equivalent(wanted.output, input.label, error)) {
      return absl::InvalidArgumentError(absl::StrCat("--output is '", wanted.output,
                                                     "', which is one of the files: name another"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

int RunTraceMerge(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("trace merge", "[FILE...]", kExamples);
  options.Value("output", "FILE",
                "write to FILE, which has its name once it is whole; packed where it ends in .gz");
  options.List("rank", "FILE=N", "that file is of rank N");
  options.List("shift", "FILE=US", "add so many microseconds to the times of that file");
  options.Value("align", "HOW",
                "clock, or start: each file begins where the first one does (clock)");
  options.List("machine", "FILE=NAME", "that file is of that machine, whose files share a clock");
  options.Flag("one-machine", "all files are of one machine, whose clock they share");
  options.Value(
      "trial", "TRIAL",
      "merge traces that the master keeps: all of TRIAL, or those with the numbers FILE...");
  options.Value("project", "P", "the project of TRIAL (default)");
  options.Value(
      "format", "F",
      "json, perfetto: a fifth of the bytes, or archive: the files as they are, with their places "
      "for Perfetto (by the name of --output: .pftrace, .tar)");
  options.Flag("without-system-metrics",
               "with --trial: leave out what its machines measured meanwhile");
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  if (options.Has("trial") && IsArchive(options)) return ArchiveStored(options, streams);
  if (options.Has("trial")) return MergeStored(options, streams);
  if (options.Has("without-system-metrics")) {
    return options.UsageError(
        absl::InvalidArgumentError("--without-system-metrics goes with --trial, not with FILEs"),
        streams);
  }
  absl::StatusOr<Wanted> wanted = WantedOf(options);
  if (!wanted.ok()) return options.UsageError(wanted.status(), streams);
  if (const absl::Status apart = CheckOutput(*wanted); !apart.ok()) {
    return options.UsageError(apart, streams);
  }
  const Progress progress(absl::StrCat("merging ", Plural(std::ssize(wanted->inputs), "trace")));
  if (const absl::Status scanned = Scan(*wanted, streams.err); !scanned.ok())
    return MergeFailed(scanned, streams);
  const auto plan = PlanMerge(wanted->inputs, wanted->alignment);
  if (!plan.ok()) return MergeFailed(plan.status(), streams);
  return WriteMergeTo(
      {.path = wanted->output, .is_json = wanted->is_json, .is_archive = wanted->is_archive}, *plan,
      [&](const TakeBytes& take) { return WriteForm(*wanted, *plan, take); }, streams);
}

}  // namespace stepwell::cli
