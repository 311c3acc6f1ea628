// stepwell series: the series of a trial.
#include <algorithm>
#include <ostream>

#include "client/cli/master_client.h"
#include "client/cli/options.h"
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

absl::StatusOr<std::vector<v1::Series>> ReadSeries(MasterClient& master,
                                                   v1::ListSeriesRequest request,
                                                   std::int64_t limit) {
  std::vector<v1::Series> series;
  for (;;) {
    const auto left = limit - static_cast<std::int64_t>(series.size());
    request.set_page_size(static_cast<std::int32_t>(std::min<std::int64_t>(left, 10'000)));
    absl::StatusOr<v1::ListSeriesResponse> page = master.ListSeries(request);
    if (!page.ok()) return page.status();
    for (v1::Series& one : *page->mutable_series()) series.push_back(std::move(one));
    if (page->next_page_token().empty() || static_cast<std::int64_t>(series.size()) >= limit) {
      return series;
    }
    request.set_page_token(page->next_page_token());
  }
}

}  // namespace

int RunSeries(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("series", "TRIAL", kExamples);
  options.Value("project", "P", "the project of TRIAL (default)");
  AddSelectorOptions(options);
  options.Value("limit", "N", "at most so many (10000)");
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  v1::ListSeriesRequest request;
  absl::StatusOr<v1::TrialRef> trial = ParseTrialRef(options.argument(), options.project());
  if (!trial.ok()) return options.UsageError(trial.status(), streams);
  *request.mutable_trial() = *trial;
  absl::StatusOr<v1::SeriesSelector> selector = SelectorOf(options);
  if (!selector.ok()) return options.UsageError(selector.status(), streams);
  *request.mutable_selector() = *selector;
  const absl::StatusOr<std::int64_t> limit = options.Integer("limit", 10'000, 1, 1'000'000);
  if (!limit.ok()) return options.UsageError(limit.status(), streams);

  MasterClient master(options.server());
  absl::StatusOr<std::vector<v1::Series>> series = absl::UnknownError("");
  {
    const Progress progress("listing series");
    series = ReadSeries(master, request, *limit);
  }
  if (!series.ok()) return ReportFailure(series.status(), options.server(), streams);
  streams.out << (options.json() ? SeriesJson(*series)
                                 : SeriesText(*series, PaintFor(streams.out)));
  return kExitOk;
}

}  // namespace stepwell::cli
