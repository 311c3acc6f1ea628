// stepwell report: where the time of a trial's steps went, and what its machine did.
#include <ostream>

#include "client/cli/master_client.h"
#include "client/cli/not_found.h"
#include "client/cli/options.h"
#include "client/cli/progress.h"
#include "client/cli/report_data.h"
#include "client/cli/report_view.h"
#include "client/cli/top_line.h"
#include "client/cli/words.h"

namespace stepwell::cli {
namespace {

constexpr char kExamples[] =
    "\nTRIAL is a name, or id:7 for a number. A scope's share is its own time, without the scopes\n"
    "inside it, over the time of the steps; shares and `unaccounted` add up to 100 %.\n"
    "\nExamples:\n"
    "  stepwell report my-run\n"
    "  stepwell report id:7 --rank 3\n"
    "  stepwell report my-run --json | jq '.timings[] | {name, share}'\n";

}  // namespace

int RunReport(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("report", "TRIAL", kExamples);
  options.Value("project", "P", "the project of TRIAL (default)");
  options.Value("rank", "R", "timings of this rank only (all; text shows 8)");
  options.Value("attempt", "N", "timings of this attempt (the newest)");
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  const absl::StatusOr<v1::TrialRef> trial = ParseTrialRef(options.argument(), options.project());
  if (!trial.ok()) return options.UsageError(trial.status(), streams);
  const absl::StatusOr<std::int64_t> attempt = options.Integer("attempt", 0, 1, INT32_MAX);
  if (!attempt.ok()) return options.UsageError(attempt.status(), streams);
  const absl::StatusOr<std::int64_t> rank = options.Integer("rank", -1, 0, INT32_MAX);
  if (!rank.ok()) return options.UsageError(rank.status(), streams);
  ReportOptions view;
  if (*rank >= 0) view.rank = static_cast<std::int32_t>(*rank);

  MasterClient master(options.master());
  absl::StatusOr<ReportData> data = absl::UnknownError("");
  {
    const Progress progress("reading the trial");
    data = ReadReport(master, *trial, static_cast<int>(*attempt));
  }
  if (!data.ok()) {
    return ReportTrialFailure(data.status(), *trial, master, options.server(), streams);
  }
  if (!HasRank(*data, view)) {
    streams.err << "stepwell: " << TrialName(data->trial) << " has no timings of rank " << *rank
                << " in attempt " << data->timings.attempt() << "; " << KnownRanksText(*data)
                << "\n";
    return kExitFailed;
  }
  streams.out << (options.json() ? ReportJson(*data, view)
                                 : InCharset(ReportText(*data, view, PaintFor(streams.out)),
                                             CharsetOfLocale()));
  return kExitOk;
}

}  // namespace stepwell::cli
