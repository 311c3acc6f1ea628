// stepwell trace get: traces of a trial as files: as they came, or as TensorBoard looks for them.
#include <filesystem>
#include <ostream>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/trace/gzip_unpacker.h"
#include "client/cli/command.h"
#include "client/cli/export_output.h"
#include "client/cli/merge_words.h"
#include "client/cli/not_found.h"
#include "client/cli/options.h"
#include "client/cli/progress.h"
#include "client/cli/proto_json.h"
#include "client/cli/stored_trace.h"
#include "client/cli/terminal.h"
#include "client/cli/trace_pages.h"
#include "client/cli/trace_words.h"
#include "client/cli/units.h"
#include "client/traces/trace_upload.h"

namespace stepwell::cli {
namespace {

constexpr char kExamples[] =
    "\nTRACEs are numbers, as 'stepwell trace list' has them; without any, all that are whole. "
    "Each "
    "has its name\n"
    "once it is whole and its bytes are those that were uploaded (JSON is kept packed).\n"
    "\nExamples:\n"
    "  stepwell trace get my-run --directory traces\n"
    "  stepwell trace get my-run 3 --output rank0.json.gz\n"
    "  stepwell trace get my-run --format json --directory traces\n"
    "  stepwell trace get my-run --tensorboard logs && tensorboard --logdir logs\n";

// Where a trace is written: its own name, unless another of them has it.
std::string NameOf(const v1::Trace& trace, bool is_converted, std::set<std::string>& taken) {
  std::string name = trace.header().name();
  if (is_converted) {
    absl::string_view stem = absl::StripSuffix(name, ".gz");
    for (const char* ending : {".json", ".pftrace", ".perfetto-trace"}) {
      stem = absl::StripSuffix(stem, ending);
    }
    const bool was_json = trace.header().format() == v1::TRACE_FORMAT_CHROME_JSON;
    name = absl::StrCat(stem, was_json ? ".pftrace" : ".json.gz");
  }
  while (!taken.insert(name).second) name = absl::StrCat(trace.trace_no(), ".", name);
  return name;
}

// What a file of that name is taken for; unspecified: it does not say.
v1::TraceFormat FormatOfName(absl::string_view name) {
  name = absl::StripSuffix(name, ".gz");
  if (absl::EndsWith(name, ".json")) return v1::TRACE_FORMAT_CHROME_JSON;
  const v1::TraceFormat format = traces::FormatOfTrace(std::string(name), "");
  return format == v1::TRACE_FORMAT_PERFETTO ? format : v1::TRACE_FORMAT_UNSPECIFIED;
}

// A name was chosen by whoever uploaded the trace: it leads nowhere else, hides nothing, and in the current
// directory, which nobody named for traces, it replaces nothing.
absl::Status CheckName(const std::string& name, const std::string& directory) {
  if (name.empty() || name.front() == '.' || absl::StrContains(name, '/')) {
    return absl::FailedPreconditionError(absl::StrCat(
        "a trace is named '", name, "', which is no name to write to; use --output FILE"));
  }
  std::error_code error;
  if (directory.empty() && std::filesystem::exists(name, error)) {
    return absl::FailedPreconditionError(
        absl::StrCat("'", name, "' is here already; use --directory DIR or --output FILE"));
  }
  return absl::OkStatus();
}

absl::Status WriteTrace(MasterClient& master, const v1::TrialRef& trial, const v1::Trace& trace,
                        bool is_unpacked, ExportOutput& output) {
  const auto write = [&](std::string_view bytes) { return output.Write(bytes); };
  GzipUnpacker unpacker(write);
  STEPWELL_RETURN_IF_ERROR(
      SourceOfStored(master, trial, trace)([&](std::string_view bytes) -> absl::Status {
        return is_unpacked ? unpacker.Feed(bytes) : write(bytes);
      }));
  return output.Finish();
}

// In the other form, as the master makes it: a merge of one.
absl::Status ConvertTrace(MasterClient& master, const v1::TrialRef& trial, const v1::Trace& trace,
                          v1::TraceFormat format, bool is_gzip, ExportOutput& output,
                          std::ostream& err) {
  v1::MergeTracesRequest request;
  *request.mutable_trial() = trial;
  request.add_trace_nos(trace.trace_no());
  request.set_format(format);
  request.set_gzip(is_gzip);
  absl::Status written;
  STEPWELL_RETURN_IF_ERROR(master.MergeTraces(request, [&](const v1::MergeTracesResponse& message) {
    TellInputs(message.placement(), err);
    TellLeftOut(message.totals(), err);
    if (!message.data().empty()) written = output.Write(message.data());
    return written.ok();
  }));
  STEPWELL_RETURN_IF_ERROR(written);
  return output.Finish();
}

// What is in neither of the two forms comes as it is.
bool IsConverted(const v1::Trace& trace, v1::TraceFormat format) {
  const v1::TraceFormat was = trace.header().format();
  const bool is_trace = was == v1::TRACE_FORMAT_CHROME_JSON || was == v1::TRACE_FORMAT_PERFETTO;
  return is_trace && format != v1::TRACE_FORMAT_UNSPECIFIED && format != was;
}

absl::Status WriteFile(MasterClient& master, const v1::TrialRef& trial, const v1::Trace& trace,
                       v1::TraceFormat format, const std::filesystem::path& path,
                       std::ostream& err) {
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  if (error) {
    return absl::FailedPreconditionError(
        absl::StrCat(path.parent_path().string(), ": ", error.message()));
  }
  STEPWELL_ASSIGN_OR_RETURN(const auto output, ExportOutput::ToFile(path.string()));
  const bool is_gzip = absl::EndsWith(path.string(), ".gz");
  // JSON is stored packed.
  const bool is_unpacked = trace.header().format() == v1::TRACE_FORMAT_CHROME_JSON && !is_gzip &&
                           FormatOfName(path.string()) == v1::TRACE_FORMAT_CHROME_JSON;
  return IsConverted(trace, format)
             ? ConvertTrace(master, trial, trace, format, is_gzip, *output, err)
             : WriteTrace(master, trial, trace, is_unpacked, *output);
}

struct Wanted {
  v1::TrialRef trial = {};
  std::vector<std::int32_t> trace_nos = {};
  std::string output = {};
  std::string directory = {};
  bool is_tensorboard = false;
  v1::TraceFormat format = v1::TRACE_FORMAT_UNSPECIFIED;  // as it came
};

absl::StatusOr<Wanted> WantedOf(const CommandOptions& options) {
  Wanted wanted;
  STEPWELL_ASSIGN_OR_RETURN(wanted.trial, ParseTrialRef(options.argument(), options.project()));
  for (std::size_t i = 1; i < options.arguments().size(); ++i) {
    STEPWELL_ASSIGN_OR_RETURN(wanted.trace_nos.emplace_back(),
                              ParseTraceNo(options.arguments()[i]));
  }
  int places = 0;
  for (const char* name : {"output", "directory", "tensorboard"}) {
    if (!options.Has(name)) continue;
    ++places;
    if (options.Text(name).empty()) {
      return absl::InvalidArgumentError(absl::StrCat("--", name, " is ''; allowed: a name"));
    }
  }
  if (places > 1) {
    return absl::InvalidArgumentError("allowed is one of --output, --directory, --tensorboard");
  }
  if (options.Has("output") && wanted.trace_nos.size() != 1) {
    return absl::InvalidArgumentError("--output takes one TRACE; several go to a --directory");
  }
  if (options.Has("format")) {
    const std::string format = options.Text("format");
    const bool is_json = format == "json";
    if ((!is_json && format != "perfetto") || options.Has("tensorboard")) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--format is '", format, "'; allowed: json, perfetto, and not with --tensorboard"));
    }
    wanted.format = is_json ? v1::TRACE_FORMAT_CHROME_JSON : v1::TRACE_FORMAT_PERFETTO;
  }
  wanted.output = options.Text("output");
  if (!options.Has("format")) wanted.format = FormatOfName(wanted.output);
  wanted.is_tensorboard = options.Has("tensorboard");
  wanted.directory =
      wanted.is_tensorboard ? options.Text("tensorboard") : options.Text("directory");
  return wanted;
}

}  // namespace

int RunTraceGet(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("trace get", "TRIAL [TRACE...]", kExamples);
  options.Value("project", "P", "the project of TRIAL (default)");
  options.Value("output", "FILE", "write the one TRACE to FILE");
  options.Value("directory", "DIR",
                "write each under its name into DIR (the current one, where none is replaced)");
  options.Value("tensorboard", "DIR", "write them as 'tensorboard --logdir DIR' expects them");
  options.Value(
      "format", "F",
      "perfetto: those in JSON as Perfetto's protobuf, a fifth of the bytes; json: those as "
      "Chrome's JSON (what --output ends in, else as they came)");
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  const auto wanted = WantedOf(options);
  if (!wanted.ok()) return options.UsageError(wanted.status(), streams);
  MasterClient master(options.master());
  const auto list = ReadTraces(master, wanted->trial);
  if (!list.ok()) {
    return ReportTrialFailure(list.status(), wanted->trial, master, options.server(), streams);
  }
  const auto traces = ChooseTraces(*list, wanted->trace_nos);
  if (!traces.ok()) {
    streams.err << "stepwell: " << traces.status().message() << "\n";
    return kExitFailed;
  }
  std::set<std::string> taken;
  nlohmann::ordered_json written = nlohmann::ordered_json::array();
  for (const v1::Trace& trace : *traces) {
    std::filesystem::path path = wanted->output;
    if (path.empty() && wanted->is_tensorboard) {
      path = std::filesystem::path(wanted->directory) /
             TensorboardPath(options.argument(), trace, taken);
    } else if (path.empty()) {
      const std::string name = NameOf(trace, IsConverted(trace, wanted->format), taken);
      if (const absl::Status fits = CheckName(name, wanted->directory); !fits.ok()) {
        return ReportFailure(fits, options.server(), streams);
      }
      path = std::filesystem::path(wanted->directory) / name;
    }
    const Progress progress(absl::StrCat("reading trace ", trace.trace_no()));
    const absl::Status got =
        WriteFile(master, wanted->trial, trace, wanted->format, path, streams.err);
    if (!got.ok()) {
      return ReportFailure(got, options.server(), streams);
    }
    if (options.json()) {
      nlohmann::ordered_json one = ToJson(trace);
      one["file"] = path.string();
      written.push_back(std::move(one));
    } else {
      streams.out << Printable(path.string()) << "\n";
    }
  }
  if (options.json()) streams.out << written.dump(2) << "\n";
  return kExitOk;
}

}  // namespace stepwell::cli
