// stepwell admin flush | status: what operators ask of a master.
#include <ostream>

#include "client/cli/master_client.h"
#include "client/cli/not_found.h"
#include "client/cli/options.h"
#include "client/cli/progress.h"
#include "client/cli/proto_json.h"
#include "client/cli/trials_view.h"

namespace stepwell::cli {
namespace {

constexpr char kFlushExamples[] =
    "\nRPCs see every acked sample at once; SQL sees them after a fold, which this asks for.\n"
    "\nExamples:\n"
    "  stepwell admin flush\n"
    "  stepwell admin flush --trial my-run\n";
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
  MasterClient master(options.server());
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

int RunAdminStatus(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("admin status", "", kStatusExamples);
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  MasterClient master(options.server());
  const absl::StatusOr<v1::GetStatusResponse> response = master.GetStatus(v1::GetStatusRequest());
  if (!response.ok()) return ReportFailure(response.status(), options.server(), streams);
  streams.out << (options.json() ? ToJson(*response).dump(2) + "\n"
                                 : StatusText(*response, PaintFor(streams.out)));
  return kExitOk;
}

}  // namespace stepwell::cli
