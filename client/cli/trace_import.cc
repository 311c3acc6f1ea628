// stepwell trace import: traces that were written as files, kept with their trial.
#include <filesystem>
#include <ostream>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/not_found.h"
#include "client/cli/options.h"
#include "client/cli/progress.h"
#include "client/cli/proto_json.h"
#include "client/cli/terminal.h"
#include "client/cli/trace_words.h"
#include "client/cli/units.h"
#include "client/traces/profile_session.h"
#include "client/traces/trace_upload.h"

namespace stepwell::cli {
namespace {

constexpr char kExamples[] =
    "\nFILEs are Chrome traces (Composer's, PyTorch's; gzip or not), TensorFlow's .xplane.pb, "
    "Perfetto's, or text.\n"
    "JSON is packed first. A file that is there already is not sent again; an upload that was cut "
    "goes on\n"
    "where it ended, also after the master was started anew. What is larger than a cap allows "
    "('stepwell caps\n"
    "get') is refused, which 'stepwell trace list' shows.\n"
    "What lies in a session of TensorBoard's, plugins/profile/SESSION/HOST.xplane.pb, is named "
    "SESSION@HOST.xplane.pb.\n"
    "A directory stands for all sessions below it.\n"
    "Exits with 66 where a file cannot be read, 1 where one was refused; the others are kept.\n"
    "\nExamples:\n"
    "  stepwell trace import my-run traces/*.json\n"
    "  stepwell trace import my-run host_12.1689.pt.trace.json.gz --rank 3\n"
    "  stepwell trace import id:7 logs\n";

absl::StatusOr<traces::TraceChoice> ChoiceOf(const CommandOptions& options) {
  traces::TraceChoice choice;
  choice.names_session = true;
  choice.machine = options.Text("machine");
  if (options.Has("format")) {
    const auto format = ParseTraceFormat(options.Text("format"));
    if (!format.ok()) return format.status();
    choice.format = *format;
  }
  if (options.Has("rank")) {
    const auto rank = options.Integer("rank", 0, 0, INT32_MAX);
    if (!rank.ok()) return rank.status();
    choice.rank = static_cast<std::int32_t>(*rank);
  }
  return choice;
}

// `named` with what lies in directories among them; what is none of these is told where it is read. False: a directory was told.
bool Expand(const std::vector<std::string>& named, std::ostream& err,
            std::vector<std::string>& files) {
  bool is_whole = true;
  for (const std::string& file : named) {
    std::error_code unknown;
    if (!std::filesystem::is_directory(file, unknown)) {
      files.push_back(file);
      continue;
    }
    const auto found = traces::ProfilesBelow(file);
    if (found.ok()) {
      files.insert(files.end(), found->begin(), found->end());
    } else {
      err << "stepwell: " << Printable(std::string(found.status().message())) << "\n";
      is_whole = false;
    }
  }
  return is_whole;
}

}  // namespace

int RunTraceImport(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("trace import", "TRIAL [FILE...]", kExamples);
  options.Value("project", "P", "the project of TRIAL (default)");
  options.Value("rank", "N", "the files are of rank N (what names and traces tell)");
  options.Value("machine", "NAME", "the files are of that machine");
  options.Value("format", "F", "json, perfetto, xplane or text (what names and first bytes tell)");
  options.Value("timeout", "DURATION", "wait so long for a master that does not answer (1m)");
  options.Value("wait", "DURATION", "wait so long in all where it says to come again (1h)");
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  const auto trial = ParseTrialRef(options.argument(), options.project());
  if (!trial.ok()) return options.UsageError(trial.status(), streams);
  if (options.arguments().size() < 2) {
    return options.UsageError(absl::InvalidArgumentError("no FILE to import"), streams);
  }
  const auto choice = ChoiceOf(options);
  if (!choice.ok()) return options.UsageError(choice.status(), streams);
  const auto silence =
      options.Duration("timeout", absl::Minutes(1), absl::ZeroDuration(), absl::Hours(24 * 365));
  if (!silence.ok()) return options.UsageError(silence.status(), streams);
  const auto told =
      options.Duration("wait", absl::Hours(1), absl::ZeroDuration(), absl::Hours(24 * 365));
  if (!told.ok()) return options.UsageError(told.status(), streams);
  traces::SendPatience patience{.silence = *silence, .told_left = *told};
  MasterClient master(options.master());
  const std::vector<std::string> named(options.arguments().begin() + 1, options.arguments().end());
  std::vector<std::string> files;
  int exit = Expand(named, streams.err, files) ? kExitOk : kExitNoInput;
  nlohmann::ordered_json stored = nlohmann::ordered_json::array();
  for (const std::string& file : files) {
    const std::string doing = absl::StrCat("importing ", Printable(file));
    Progress progress(doing);
    auto prepared = traces::PrepareTrace(file, *choice);
    if (!prepared.ok()) {
      streams.err << "stepwell: " << Printable(std::string(prepared.status().message())) << "\n";
      exit = absl::IsNotFound(prepared.status()) ? kExitNoInput : kExitFailed;
      continue;
    }
    for (const std::string& note : prepared->notes) {
      streams.err << "stepwell: " << Printable(file) << ": " << note << "\n";
    }
    const auto call = [&](const v1::TraceUpload& upload, const auto& next) {
      return master.UploadTrace(upload, next);
    };
    patience.on_told = [&](absl::Duration wait) {
      progress.Say(wait == absl::ZeroDuration()
                       ? doing
                       : absl::StrCat(doing, ", the master said to come again in ",
                                      absl::FormatDuration(absl::Ceil(wait, absl::Seconds(1)))));
    };
    const auto sent = traces::SendTrace(call, *trial, *prepared, patience);
    const bool is_told_later = traces::ComeAgainOf(sent.status()).has_value();
    const bool is_of_file = sent.ok() || absl::IsInvalidArgument(sent.status()) ||
                            (absl::IsResourceExhausted(sent.status()) && !is_told_later);
    if (is_told_later) {
      streams.err << "stepwell: the master says to come again later, and '--wait' is used up; "
                     "what was not sent goes on at the next import\n";
    }
    if (!is_of_file) {
      return ReportTrialFailure(sent.status(), *trial, master, options.server(), streams);
    }
    if (!sent.ok()) {
      streams.err << "stepwell: " << Printable(std::string(sent.status().message())) << "\n";
      exit = kExitFailed;
      continue;
    }
    if (options.json()) {
      nlohmann::ordered_json one = ToJson(*sent);
      one["file"] = file;
      stored.push_back(std::move(one));
    } else {
      streams.out << "trace " << sent->trace_no() << ": " << Printable(prepared->header.name())
                  << ", " << ValueText(static_cast<double>(prepared->header.byte_count()), "bytes")
                  << "\n";
    }
  }
  if (options.json()) streams.out << stored.dump(2) << "\n";
  return exit;
}

}  // namespace stepwell::cli
