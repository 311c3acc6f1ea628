// stepwell trace open: a trial's traces in Perfetto's page: fetched, merged where there are several, and handed
// to the page from this machine.
#include <ostream>

#include "absl/strings/str_cat.h"
#include "base/shell_word.h"
#include "base/status_macros.h"
#include "client/cli/command.h"
#include "client/cli/merge_words.h"
#include "client/cli/not_found.h"
#include "client/cli/one_file_server.h"
#include "client/cli/options.h"
#include "client/cli/progress.h"
#include "client/cli/scratch_file.h"
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
    "traces are merged first. The bytes go from this machine to the browser, and nowhere else. "
    "From a browser\n"
    "on another machine: 'ssh -L 9001:127.0.0.1:9001 HOST' there, HOST being this one; or "
    "'stepwell "
    "trace get'.\n"
    "Exits with 75 where nobody opened it within --timeout.\n"
    "\nExamples:\n"
    "  stepwell trace open my-run\n"
    "  stepwell trace open my-run 3\n";

// `is_all`: nobody named them, so that a merge leaves out what cannot be placed.
absl::Status Fetch(MasterClient& master, const v1::TrialRef& trial,
                   const std::vector<v1::Trace>& traces, bool is_all, ScratchFile& file,
                   std::ostream& err) {
  absl::Status written;
  absl::Status fetched;
  const auto take = [&](const std::string& bytes) {
    if (!bytes.empty()) written = file.Write(bytes);
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
  // A file that takes no more ended the fetch.
  STEPWELL_RETURN_IF_ERROR(written);
  return fetched;
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

// What it waits for, and what to do where that is not here.
std::string WaitingText(const CommandOptions& options, int port, absl::Duration patience) {
  std::string get = "stepwell trace get";
  for (const std::string& argument : options.arguments()) {
    absl::StrAppend(&get, " ", Printable(ShellWord(argument)));
  }
  if (options.Has("project")) {
    absl::StrAppend(&get, " --project ", Printable(ShellWord(options.project())));
  }
  return absl::StrCat("stepwell: waits ", absl::FormatDuration(patience),
                      " for a browser on this machine to open that address; Ctrl-C ends it.\n"
                      "From a browser on another machine, run there first, HOST being this one:\n"
                      "  ssh -L ",
                      port, ":127.0.0.1:", port,
                      " HOST\n"
                      "Or have the traces as files:\n"
                      "  ",
                      get, "\n");
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
  const auto file = ScratchFile::Make();
  if (!file.ok()) {
    streams.err << "stepwell: " << file.status().message() << "\n";
    return kExitFailed;
  }
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
  {
    const Progress progress("fetching traces");
    const absl::Status got = Fetch(master, *trial, traces, trace_nos.empty(), **file, streams.err);
    if (!got.ok()) {
      return ReportFailure(got, options.server(), streams);
    }
  }
  auto server = OneFileServer::Open({.file = (*file)->descriptor(),
                                     .name = "trace",
                                     .port = static_cast<int>(*port),
                                     .origin = kPerfetto});
  if (!server.ok()) {
    streams.err << "stepwell: " << server.status().message() << "\n";
    return kExitFailed;
  }
  if (options.json()) {
    streams.out << "{\"url\":\"" << (*server)->url() << "\"}" << std::endl;
  } else {
    streams.out << kPerfetto << "/#!/?url=" << (*server)->url() << std::endl;
  }
  streams.err << WaitingText(options, (*server)->port(), *patience) << std::flush;
  if ((*server)->ServeOnce(SteadyTime::Now() + *patience).ok()) return kExitOk;
  streams.err << "stepwell: nobody opened it within " << absl::FormatDuration(*patience) << "\n";
  return kExitAgain;
}

}  // namespace stepwell::cli
