// stepwell compare: trials side by side: their scopes, then their metrics.
#include <algorithm>
#include <ostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/compare_data.h"
#include "client/cli/compare_view.h"
#include "client/cli/master_client.h"
#include "client/cli/not_found.h"
#include "client/cli/options.h"
#include "client/cli/pages.h"
#include "client/cli/progress.h"
#include "client/cli/selector_options.h"

namespace stepwell::cli {
namespace {

constexpr std::int64_t kLinesDefault = 20;
constexpr absl::Duration kRangeMax = absl::Hours(24 * 36500);

constexpr char kExamples[] =
    "\nA TRIAL is a name, or id:7 for a number; differences and ratios are to the first. By batch, "
    "the\n"
    "newest attempt of each batch counts, and samples without batch take no part; by time, all do, "
    "from\n"
    "each trial's first sample on. Series that differ only in rank, machine or device are folded\n"
    "together, unless --group-by names the labels that stay apart ('' = none).\n"
    "Exits with 1 where no sample matches.\n"
    "\nExamples:\n"
    "  stepwell compare baseline faster-loader\n"
    "  stepwell compare baseline faster-loader --from 10 --group timing --group-by rank\n"
    "  stepwell compare id:7 id:8 id:9 --by time --to 10m\n"
    "  stepwell compare a b --json | jq '.series[] | {key, ratio: .sides[1].mean_ratio}'\n";

absl::Status FillRange(const CommandOptions& options, v1::CompareTrialsRequest& request) {
  const std::string by = options.Text("by");
  if (by.empty() || by == "batch") {
    request.set_axis(v1::COMPARE_AXIS_BATCH);
    STEPWELL_ASSIGN_OR_RETURN(const std::int64_t from, options.Integer("from", 0, 0, INT32_MAX));
    STEPWELL_ASSIGN_OR_RETURN(const std::int64_t to, options.Integer("to", 0, 1, INT32_MAX));
    request.set_start(from);
    request.set_end(to);
  } else if (by == "time") {
    request.set_axis(v1::COMPARE_AXIS_TIME_SINCE_START);
    const absl::Duration none = absl::ZeroDuration();
    STEPWELL_ASSIGN_OR_RETURN(const absl::Duration from,
                              options.Duration("from", none, none, kRangeMax));
    STEPWELL_ASSIGN_OR_RETURN(const absl::Duration to,
                              options.Duration("to", none, absl::Microseconds(1), kRangeMax));
    request.set_start(absl::ToInt64Microseconds(from));
    request.set_end(absl::ToInt64Microseconds(to));
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("--by is '", by, "'; allowed: batch (the default), time"));
  }
  if (request.end() != 0 && request.end() < request.start()) {
    return absl::InvalidArgumentError(absl::StrCat("--to is '", options.Text("to"),
                                                   "'; allowed: --from ('", options.Text("from"),
                                                   "') and above"));
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::CompareTrialsRequest> RequestOf(const CommandOptions& options) {
  v1::CompareTrialsRequest request;
  for (const std::string& argument : options.arguments()) {
    STEPWELL_ASSIGN_OR_RETURN(*request.add_trials(), ParseTrialRef(argument, options.project()));
  }
  STEPWELL_ASSIGN_OR_RETURN(v1::SeriesSelector selector, SelectorOf(options));
  if (selector.ByteSizeLong() > 0) *request.add_selectors() = std::move(selector);
  STEPWELL_RETURN_IF_ERROR(FillRange(options, request));
  return request;
}

// What the series of each trial tell: how many ranks there are, and which labels stay apart.
absl::Status ReadSeriesOf(MasterClient& master, const v1::TrialRef& trial, CompareData& data,
                          std::vector<v1::Series>& all) {
  v1::ListSeriesRequest list;
  *list.mutable_trial() = trial;
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<v1::Series> series,
                            ReadSeries(master, std::move(list), kNoLimit));
  data.rank_counts.push_back(CountRanks(series));
  all.insert(all.end(), series.begin(), series.end());
  return absl::OkStatus();
}

// Of those that were given; else of those that tell what is measured.
std::vector<std::string> GroupByOf(const CommandOptions& options,
                                   const std::vector<v1::Series>& series) {
  if (!options.Has("group-by")) return LabelsToKeep(series);
  // A device's clock is never mixed with the host's.
  std::vector<std::string> labels = {"clock"};
  for (const std::string& text : options.Texts("group-by")) {
    for (const absl::string_view label : absl::StrSplit(text, ',', absl::SkipEmpty())) {
      labels.emplace_back(label);
    }
  }
  return labels;
}

// Fills in which labels stay apart. Where it fails because of a trial, data.rank_counts tells which: it has
// one of each trial before.
absl::Status ReadComparison(MasterClient& master, const CommandOptions& options,
                            v1::CompareTrialsRequest& request, CompareData& data) {
  std::vector<v1::Series> series;
  for (const v1::TrialRef& trial : request.trials()) {
    STEPWELL_RETURN_IF_ERROR(ReadSeriesOf(master, trial, data, series));
  }
  for (std::string& label : GroupByOf(options, series)) request.add_group_by(std::move(label));
  STEPWELL_ASSIGN_OR_RETURN(data.answer, master.CompareTrials(request));
  return absl::OkStatus();
}

const char* NothingText(const v1::CompareTrialsRequest& request) {
  if (request.axis() == v1::COMPARE_AXIS_TIME_SINCE_START) {
    return "no samples match; 'stepwell series TRIAL' lists what a trial has\n";
  }
  return "no samples with a batch match; --by time compares those without, too, and 'stepwell "
         "series "
         "TRIAL' lists what a trial has\n";
}

}  // namespace

int RunCompare(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("compare", "TRIAL TRIAL [TRIAL...]", kExamples);
  options.Value("project", "P", "the project of the TRIALs (default)");
  options.Value("by", "AXIS", "batch, or time since each trial's start (batch)");
  options.Value("from", "N", "from this batch on, or from so long after the start (0)");
  options.Value("to", "N", "up to this batch, or to so long after the start (all)");
  AddSelectorOptions(options);
  options.List("group-by", "LABEL,...", "labels whose values stay apart: rank, agent, device, ...");
  options.Value("limit", "N",
                "at most N scopes and N series of each part of the text, 0 = all (20)");
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  absl::StatusOr<v1::CompareTrialsRequest> request = RequestOf(options);
  if (!request.ok()) return options.UsageError(request.status(), streams);
  const absl::StatusOr<std::int64_t> limit = options.Integer("limit", kLinesDefault, 0, INT32_MAX);
  if (!limit.ok()) return options.UsageError(limit.status(), streams);

  MasterClient master(options.master());
  CompareData data;
  data.axis = request->axis();
  absl::Status read;
  {
    const Progress progress("comparing the trials");
    read = ReadComparison(master, options, *request, data);
  }
  if (!read.ok()) {
    const int trial =
        std::min(static_cast<int>(data.rank_counts.size()), request->trials_size() - 1);
    return ReportTrialFailure(read, request->trials(trial), master, options.server(), streams);
  }
  const auto lines_max = *limit == 0 ? SIZE_MAX : static_cast<std::size_t>(*limit);
  streams.out << (options.json() ? CompareJson(data)
                                 : CompareText(data, lines_max, PaintFor(streams.out)));
  if (data.answer.series_size() > 0) return kExitOk;
  streams.err << "stepwell: " << NothingText(*request);
  return kExitFailed;
}

}  // namespace stepwell::cli
