// stepwell trace list | delete: the traces of a trial.
#include <ostream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/not_found.h"
#include "client/cli/options.h"
#include "client/cli/proto_json.h"
#include "client/cli/table.h"
#include "client/cli/terminal.h"
#include "client/cli/trace_pages.h"
#include "client/cli/trace_words.h"
#include "client/cli/units.h"

namespace stepwell::cli {
namespace {

constexpr char kListExamples[] =
    "\nTraces that a cap refused or removed are listed, too.\n"
    "\nExamples:\n"
    "  stepwell trace list my-run\n"
    "  stepwell trace list id:7 --json\n";
constexpr char kDeleteExamples[] =
    "\nTRACE is its number, as 'stepwell trace list' has it.\n"
    "\nExamples:\n"
    "  stepwell trace delete my-run 3\n"
    "  stepwell trace delete id:7 3 --json\n";

std::string SizeText(std::int64_t bytes) { return ValueText(static_cast<double>(bytes), "bytes"); }

std::string ListText(const v1::ListTracesResponse& list, const Paint& paint) {
  if (list.traces().empty()) return "No traces; 'stepwell trace import' brings some.\n";
  Table table({{"NO", Align::kRight},
               {"NAME"},
               {"RANK", Align::kRight},
               {"CYCLE"},
               {"FORMAT"},
               {"SIZE", Align::kRight},
               {"STATE"},
               {"UPLOADED"}});
  for (const v1::Trace& trace : list.traces()) {
    const v1::TraceHeader& header = trace.header();
    table.Add({absl::StrCat(trace.trace_no()), Printable(header.name()),
               header.has_rank() ? absl::StrCat(header.rank()) : "", TraceCycleText(header),
               TraceFormatText(header.format()), SizeText(header.byte_count()),
               TraceStateText(trace), TimeText(trace.created_time_us())});
  }
  std::string text = table.Text(paint);
  absl::StrAppend(&text, "\n", SizeText(list.byte_count()), " are kept",
                  list.refused_count() == 0
                      ? ""
                      : absl::StrCat("; ", Plural(list.refused_count(), "trace"),
                                     " refused by caps ('stepwell caps get' shows them)"),
                  ".\n");
  return text;
}

}  // namespace

int RunTraceList(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("trace list", "TRIAL", kListExamples);
  options.Value("project", "P", "the project of TRIAL (default)");
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  const auto trial = ParseTrialRef(options.argument(), options.project());
  if (!trial.ok()) return options.UsageError(trial.status(), streams);
  MasterClient master(options.master());
  const auto list = ReadTraces(master, *trial);
  if (!list.ok()) {
    return ReportTrialFailure(list.status(), *trial, master, options.server(), streams);
  }
  streams.out << (options.json() ? ToJson(*list).dump(2) + "\n"
                                 : ListText(*list, PaintFor(streams.out)));
  return kExitOk;
}

int RunTraceDelete(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("trace delete", "TRIAL TRACE", kDeleteExamples);
  options.Value("project", "P", "the project of TRIAL (default)");
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  const auto trial = ParseTrialRef(options.argument(), options.project());
  if (!trial.ok()) return options.UsageError(trial.status(), streams);
  const auto trace_no = ParseTraceNo(options.argument(1));
  if (!trace_no.ok()) return options.UsageError(trace_no.status(), streams);
  v1::DeleteTraceRequest request;
  *request.mutable_trial() = *trial;
  request.set_trace_no(*trace_no);
  MasterClient master(options.master());
  const auto deleted = master.DeleteTrace(request);
  if (!deleted.ok()) {
    return ReportTrialFailure(deleted.status(), *trial, master, options.server(), streams);
  }
  streams.out << (options.json()
                      ? ToJson(*deleted).dump(2) + "\n"
                      : absl::StrCat("Trace ", *trace_no, " of ", Printable(options.argument()),
                                     " is deleted: ", SizeText(deleted->byte_count()), ".\n"));
  return kExitOk;
}

}  // namespace stepwell::cli
