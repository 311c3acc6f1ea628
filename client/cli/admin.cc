// stepwell admin flush | profiling | status: what operators ask of a master.
#include <algorithm>
#include <iterator>
#include <ostream>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "client/cli/master_client.h"
#include "client/cli/nearest.h"
#include "client/cli/not_found.h"
#include "client/cli/options.h"
#include "client/cli/pages.h"
#include "client/cli/progress.h"
#include "client/cli/proto_json.h"
#include "client/cli/trials_view.h"
#include "client/recorder/src/sampled_names.h"

namespace stepwell::cli {
namespace {

constexpr char kFlushExamples[] =
    "\nRPCs see every acked sample at once; SQL sees them after a fold, which this asks for.\n"
    "\nExamples:\n"
    "  stepwell admin flush\n"
    "  stepwell admin flush --trial my-run\n";
constexpr char kProfilingExamples[] =
    "\nTRIAL is a name, or id:7 for a number. Its open writers are told at once, those that open "
    "later\n"
    "when they do; a restart of the master forgets nothing. Each call replaces what was asked "
    "before:\n"
    "'on' alone is the way back to what the trial chose itself.\n"
    "\nExamples:\n"
    "  stepwell admin profiling my-run off\n"
    "  stepwell admin profiling my-run on\n"
    "  stepwell admin profiling id:7 on --interval 100ms --groups gpu,cpu --json\n";
// Advice is worth ten pages of the master's time.
constexpr std::int64_t kSeriesMax = 100'000;
constexpr char kStatusExamples[] = "\nExample:\n  stepwell admin status --json\n";

// The number of the trial that --trial names; 0 = all.
absl::StatusOr<std::int64_t> TrialIdOf(MasterClient& master, const v1::TrialRef& ref) {
  if (ref.trial_id() != 0) return ref.trial_id();
  v1::GetTrialRequest request;
  *request.mutable_trial() = ref;
  absl::StatusOr<v1::GetTrialResponse> response = master.GetTrial(request);
  if (!response.ok()) return response.status();
  return response->trial().trial_id();
}

// What the command line asks for, but its trial. kInvalidArgument says what is allowed.
absl::StatusOr<v1::SetProfilingRequest> ProfilingOf(const CommandOptions& options) {
  v1::SetProfilingRequest request;
  const std::string& word = options.argument(1);
  if (word != "on" && word != "off") {
    return absl::InvalidArgumentError(absl::StrCat("'", word, "' is neither on nor off"));
  }
  request.set_on(word == "on");
  if (!request.on() && (options.Has("interval") || options.Has("groups"))) {
    return absl::InvalidArgumentError("--interval and --groups go with 'on'");
  }
  const absl::StatusOr<absl::Duration> interval =
      options.Duration("interval", absl::ZeroDuration(), absl::Milliseconds(10), absl::Hours(1));
  if (!interval.ok()) return interval.status();
  request.set_interval_us(absl::ToInt64Microseconds(*interval));
  if (!options.Has("groups")) return request;
  for (const absl::string_view name :
       absl::StrSplit(options.Text("groups"), ',', absl::SkipWhitespace())) {
    request.add_metric_groups(std::string(absl::StripAsciiWhitespace(name)));
  }
  if (request.metric_groups_size() == 0) {
    return absl::InvalidArgumentError("--groups is empty; allowed: names with commas between");
  }
  return request;
}

// Groups that no sensor has and that the trial itself has not recorded: a slip, most likely, though they
// may come.
std::string UnknownGroupsText(MasterClient& master, const v1::SetProfilingRequest& request) {
  const std::vector<std::string> sampled(std::begin(recorder::kSampledGroups),
                                         std::end(recorder::kSampledGroups));
  std::set<std::string> known(sampled.begin(), sampled.end());
  const auto is_known = [&](const std::string& group) { return known.contains(group); };
  const auto& groups = request.metric_groups();
  if (std::all_of(groups.begin(), groups.end(), is_known)) return {};
  v1::ListSeriesRequest list;
  *list.mutable_trial() = request.trial();
  const auto series = ReadSeries(master, std::move(list), kSeriesMax);
  if (series.ok()) {
    for (const v1::Series& one : *series) known.insert(one.key().metric_group());
  }
  std::string text;
  for (const std::string& group : groups) {
    if (is_known(group)) continue;
    const std::vector<std::string> near = NearestNames(group, known);
    absl::StrAppend(&text, "stepwell: no sensor has the group '", Printable(group),
                    "', and the trial has recorded none of that name",
                    near.empty() ? "" : "; near it: ", Printable(absl::StrJoin(near, ", ")),
                    ". Sensors' groups: ", absl::StrJoin(sampled, ", "), ".\n");
  }
  return text;
}

absl::StatusOr<v1::FlushResponse> Flush(MasterClient& master,
                                        const std::optional<v1::TrialRef>& trial) {
  v1::FlushRequest request;
  if (trial) {
    absl::StatusOr<std::int64_t> trial_id = TrialIdOf(master, *trial);
    if (!trial_id.ok()) return trial_id.status();
    request.set_trial_id(*trial_id);
  }
  return master.Flush(request);
}

}  // namespace

int RunAdminFlush(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("admin flush", "", kFlushExamples);
  options.Value("trial", "TRIAL", "only this trial: a name, or id:7 for a number");
  options.Value("project", "P", "the project of TRIAL (default)");
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  std::optional<v1::TrialRef> trial;
  if (options.Has("trial")) {
    absl::StatusOr<v1::TrialRef> parsed = ParseTrialRef(options.Text("trial"), options.project());
    if (!parsed.ok()) return options.UsageError(parsed.status(), streams);
    trial = *parsed;
  }
  MasterClient master(options.master());
  absl::StatusOr<v1::FlushResponse> response = absl::UnknownError("");
  {
    const Progress progress("folding");
    response = Flush(master, trial);
  }
  if (!response.ok()) {
    return ReportTrialFailure(response.status(), trial.value_or(v1::TrialRef()), master,
                              options.server(), streams);
  }
  streams.out << (options.json() ? ToJson(*response).dump(2) + "\n" : FlushText(*response));
  return kExitOk;
}

int RunAdminProfiling(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("admin profiling", "TRIAL on|off", kProfilingExamples);
  options.Value("project", "P", "the project of TRIAL (default)");
  options.Value("interval", "DURATION", "between two samples: 10ms ... 1h (what the trial chose)");
  options.Value("groups", "G,...", "only these metric groups: gpu,cpu,... (what the trial chose)");
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  const absl::StatusOr<v1::TrialRef> trial = ParseTrialRef(options.argument(), options.project());
  if (!trial.ok()) return options.UsageError(trial.status(), streams);
  absl::StatusOr<v1::SetProfilingRequest> request = ProfilingOf(options);
  if (!request.ok()) return options.UsageError(request.status(), streams);
  *request->mutable_trial() = *trial;
  MasterClient master(options.master());
  const absl::StatusOr<v1::SetProfilingResponse> response = master.SetProfiling(*request);
  if (!response.ok()) {
    return ReportTrialFailure(response.status(), *trial, master, options.server(), streams);
  }
  streams.out << (options.json() ? ToJson(*response).dump(2) + "\n"
                                 : ProfilingText(options.argument(), *response));
  streams.err << UnknownGroupsText(master, *request);
  return kExitOk;
}

int RunAdminStatus(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("admin status", "", kStatusExamples);
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  MasterClient master(options.master());
  const absl::StatusOr<v1::GetStatusResponse> response = master.GetStatus(v1::GetStatusRequest());
  if (!response.ok()) return ReportFailure(response.status(), options.server(), streams);
  streams.out << (options.json() ? ToJson(*response).dump(2) + "\n"
                                 : StatusText(*response, PaintFor(streams.out)));
  return kExitOk;
}

}  // namespace stepwell::cli
