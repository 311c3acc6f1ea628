// stepwell series: the series of a trial.
#include <ostream>

#include "client/cli/master_client.h"
#include "client/cli/not_found.h"
#include "client/cli/options.h"
#include "client/cli/pages.h"
#include "client/cli/progress.h"
#include "client/cli/selector_options.h"
#include "client/cli/trials_view.h"

namespace stepwell::cli {
namespace {

constexpr char kExamples[] =
    "\nTRIAL is a name, or id:7 for a number.\n"
    "\nExamples:\n"
    "  stepwell series my-run\n"
    "  stepwell series id:7 --group gpu --label device=GPU-1 --json\n";

}  // namespace

int RunSeries(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("series", "TRIAL", kExamples);
  options.Value("project", "P", "the project of TRIAL (default)");
  AddSelectorOptions(options);
  options.Value("limit", "N", "at most so many (10000)");
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  v1::ListSeriesRequest request;
  if (const absl::Status filled = FillSelection(options, request); !filled.ok()) {
    return options.UsageError(filled, streams);
  }
  const absl::StatusOr<std::int64_t> limit = options.Integer("limit", 10'000, 1, 1'000'000);
  if (!limit.ok()) return options.UsageError(limit.status(), streams);

  MasterClient master(options.master());
  absl::StatusOr<std::vector<v1::Series>> series = absl::UnknownError("");
  {
    const Progress progress("listing series");
    series = ReadSeries(master, request, *limit);
  }
  if (!series.ok()) {
    return ReportTrialFailure(series.status(), request.trial(), master, options.server(), streams);
  }
  streams.out << (options.json() ? SeriesJson(*series)
                                 : SeriesText(*series, PaintFor(streams.out)));
  if (series->empty())
    streams.err << "stepwell: " << NothingMatchedText(master, request.trial(), request.selector());
  return kExitOk;
}

}  // namespace stepwell::cli
