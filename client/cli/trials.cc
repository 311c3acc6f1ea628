// stepwell trials: the trials of a master, newest first.
#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/master_client.h"
#include "client/cli/options.h"
#include "client/cli/pages.h"
#include "client/cli/progress.h"
#include "client/cli/proto_json.h"
#include "client/cli/table.h"
#include "client/cli/trials_view.h"
#include "client/cli/words.h"

namespace stepwell::cli {
namespace {

constexpr char kExamples[] =
    "\nExamples:\n"
    "  stepwell trials\n"
    "  stepwell trials --state running --project vision\n"
    "  stepwell trials --contains bert --limit 5 --json\n";

absl::StatusOr<v1::ListTrialsRequest> RequestOf(const CommandOptions& options) {
  v1::ListTrialsRequest request;
  request.set_project(options.project());
  request.set_name_contains(options.Text("contains"));
  if (const std::string state = options.Text("state"); !state.empty()) {
    absl::StatusOr<v1::TrialState> parsed = ParseState(state);
    if (!parsed.ok()) return parsed.status();
    request.set_state(*parsed);
  }
  return request;
}

// What was asked for, where there is none of it.
std::string NoneText(const CommandOptions& options) {
  std::vector<std::string> words;
  for (const char* name : {"project", "state", "contains"}) {
    if (options.Has(name))
      words.push_back(absl::StrCat("--", name, " ", Printable(options.Text(name))));
  }
  return words.empty() ? "No trials.\n"
                       : absl::StrCat("No trials match ", absl::StrJoin(words, " "), ".\n");
}

// Of one trial there is room to say that somebody restrains its recording.
std::string RestraintText(MasterClient& master, const std::vector<v1::Trial>& trials) {
  if (trials.size() != 1) return {};
  v1::GetTrialRequest request;
  request.mutable_trial()->set_trial_id(trials.front().trial_id());
  const auto found = master.GetTrial(request);
  if (!found.ok() || !found->has_profiling() || !IsRestrained(found->profiling())) return {};
  return absl::StrCat("By request, ", ProfilingWords(found->profiling()),
                      "; 'stepwell admin profiling TRIAL on' takes it back.\n");
}

}  // namespace

int RunTrials(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("trials", "", kExamples);
  options.Value("project", "P", "only trials of this project");
  options.Value("state", "S", "only running, completed, failed or lost trials");
  options.Value("contains", "TEXT", "only trials whose name contains this");
  options.Value("limit", "N", "at most so many (100)");
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  const absl::StatusOr<v1::ListTrialsRequest> request = RequestOf(options);
  if (!request.ok()) return options.UsageError(request.status(), streams);
  const absl::StatusOr<std::int64_t> limit = options.Integer("limit", 100, 1, 100'000);
  if (!limit.ok()) return options.UsageError(limit.status(), streams);

  MasterClient master(options.master());
  absl::StatusOr<std::vector<v1::Trial>> trials = absl::UnknownError("");
  {
    const Progress progress("listing trials");
    trials = ReadTrials(master, *request, *limit);
  }
  if (!trials.ok()) return ReportFailure(trials.status(), options.server(), streams);
  if (options.json()) {
    streams.out << TrialsJson(*trials);
  } else if (trials->empty()) {
    streams.out << NoneText(options);
  } else {
    streams.out << TrialsText(*trials, PaintFor(streams.out)) << RestraintText(master, *trials);
  }
  return kExitOk;
}

}  // namespace stepwell::cli
