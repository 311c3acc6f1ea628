// stepwell trace open: a trial's traces in Perfetto's page: fetched, merged where there are several, and handed
// to the page from this machine.
#include <unistd.h>

#include <filesystem>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/cli/command.h"
#include "client/cli/export_output.h"
#include "client/cli/merge_words.h"
#include "client/cli/not_found.h"
#include "client/cli/one_file_server.h"
#include "client/cli/options.h"
#include "client/cli/progress.h"
#include "client/cli/terminal.h"
#include "client/cli/trace_pages.h"

namespace stepwell::cli {
namespace {

// What Perfetto's page fetches from, and nothing else of this machine.
constexpr int kPerfettoPort = 9001;
constexpr char kPerfetto[] = "https://ui.perfetto.dev";
constexpr char kExamples[] =
    "\nPrints an address for a browser on this machine, and ends once the page has fetched the "
    "trace. Several\n"
    "traces are merged first. The bytes go from this machine to the browser, and nowhere else.\n"
    "Exits with 75 where nobody opened it within --timeout.\n"
    "\nExamples:\n"
    "  stepwell trace open my-run\n"
    "  stepwell trace open my-run 3\n";

// Gone with this.
class ScratchFile {
 public:
  ScratchFile() {
    std::error_code error;
    std::string name = (std::filesystem::temp_directory_path(error) / "stepwell-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) directory_ = name;
  }
  ~ScratchFile() {
    std::error_code error;
    if (!directory_.empty()) std::filesystem::remove_all(directory_, error);
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  bool is_there() const { return !directory_.empty(); }
  std::string path() const { return directory_ + "/trace"; }

 private:
  std::string directory_;
};

// `is_all`: nobody named them, so that a merge leaves out what cannot be placed.
absl::Status Fetch(MasterClient& master, const v1::TrialRef& trial,
                   const std::vector<v1::Trace>& traces, bool is_all, const std::string& path,
                   std::ostream& err) {
  STEPWELL_ASSIGN_OR_RETURN(const auto output, ExportOutput::ToFile(path));
  absl::Status written;
  absl::Status fetched;
  const auto take = [&](const std::string& bytes) {
    if (!bytes.empty()) written = output->Write(bytes);
    return written.ok();
  };
  if (traces.size() == 1) {
    v1::GetTraceRequest request;
    *request.mutable_trial() = trial;
    request.set_trace_no(traces[0].trace_no());
    fetched = master.GetTrace(
        request, [&](const v1::GetTraceResponse& message) { return take(message.part().data()); });
  } else {
    v1::MergeTracesRequest request;
    *request.mutable_trial() = trial;
    if (!is_all) {
      for (const v1::Trace& trace : traces) request.add_trace_nos(trace.trace_no());
    }
    request.set_format(v1::TRACE_FORMAT_PERFETTO);
    fetched = master.MergeTraces(request, [&](const v1::MergeTracesResponse& message) {
      TellInputs(message.placement(), err);
      TellLeftOut(message.totals(), err);
      return take(message.data());
    });
  }
  STEPWELL_RETURN_IF_ERROR(fetched);
  STEPWELL_RETURN_IF_ERROR(written);
  return output->Finish();
}

// Those that Perfetto reads.
std::vector<v1::Trace> Readable(const std::vector<v1::Trace>& traces) {
  std::vector<v1::Trace> readable;
  for (const v1::Trace& trace : traces) {
    const v1::TraceFormat format = trace.header().format();
    if (format == v1::TRACE_FORMAT_PERFETTO || format == v1::TRACE_FORMAT_CHROME_JSON) {
      readable.push_back(trace);
    }
  }
  return readable;
}

}  // namespace

int RunTraceOpen(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("trace open", "TRIAL [TRACE...]", kExamples);
  options.Value("project", "P", "the project of TRIAL (default)");
  options.Value("port", "PORT", "on this machine; Perfetto's page reads from 9001 alone (9001)");
  options.Value("timeout", "DURATION", "wait so long for the page (10m)");
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  const auto trial = ParseTrialRef(options.argument(), options.project());
  if (!trial.ok()) return options.UsageError(trial.status(), streams);
  std::vector<std::int32_t> trace_nos;
  for (std::size_t i = 1; i < options.arguments().size(); ++i) {
    const auto trace_no = ParseTraceNo(options.arguments()[i]);
    if (!trace_no.ok()) return options.UsageError(trace_no.status(), streams);
    trace_nos.push_back(*trace_no);
  }
  const auto port = options.Integer("port", kPerfettoPort, 0, 65'535);
  if (!port.ok()) return options.UsageError(port.status(), streams);
  const auto patience =
      options.Duration("timeout", absl::Minutes(10), absl::ZeroDuration(), absl::Hours(24));
  if (!patience.ok()) return options.UsageError(patience.status(), streams);
  MasterClient master(options.master());
  const auto list = ReadTraces(master, *trial);
  if (!list.ok()) {
    return ReportTrialFailure(list.status(), *trial, master, options.server(), streams);
  }
  const auto chosen = ChooseTraces(*list, trace_nos);
  const std::vector<v1::Trace> traces = chosen.ok() ? Readable(*chosen) : std::vector<v1::Trace>();
  if (traces.empty()) {
    streams.err << "stepwell: "
                << (chosen.ok() ? "none of these traces is one that Perfetto reads"
                                : chosen.status().message())
                << "\n";
    return kExitFailed;
  }
  const ScratchFile file;
  if (!file.is_there()) {
    streams.err << "stepwell: no directory for temporary files can be made\n";
    return kExitFailed;
  }
  {
    const Progress progress("fetching traces");
    const absl::Status got =
        Fetch(master, *trial, traces, trace_nos.empty(), file.path(), streams.err);
    if (!got.ok()) {
      return ReportFailure(got, options.server(), streams);
    }
  }
  auto server = OneFileServer::Open(
      {.path = file.path(), .name = "trace", .port = static_cast<int>(*port), .origin = kPerfetto});
  if (!server.ok()) {
    streams.err << "stepwell: " << server.status().message() << "\n";
    return kExitFailed;
  }
  if (options.json()) {
    streams.out << "{\"url\":\"" << (*server)->url() << "\"}" << std::endl;
  } else {
    streams.out << kPerfetto << "/#!/?url=" << (*server)->url() << std::endl;
  }
  if ((*server)->ServeOnce(SteadyTime::Now() + *patience).ok()) return kExitOk;
  streams.err << "stepwell: nobody opened it within " << absl::FormatDuration(*patience) << "\n";
  return kExitAgain;
}

}  // namespace stepwell::cli
