// stepwell admin archive | unarchive | delete: trials that are finished with.
#include <unistd.h>

#include <ostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/master_client.h"
#include "client/cli/not_found.h"
#include "client/cli/options.h"
#include "client/cli/progress.h"
#include "client/cli/proto_json.h"
#include "client/cli/terminal.h"
#include "client/cli/units.h"
#include "client/cli/words.h"

namespace stepwell::cli {
namespace {

constexpr char kArchiveExamples[] =
    "\nAn archived trial can be read and is not written: its open writers are told, those that "
    "come "
    "later are\nrefused, until it is taken back.\n"
    "\nExamples:\n"
    "  stepwell admin archive my-run\n"
    "  stepwell admin archive id:7 --json\n";
constexpr char kUnarchiveExamples[] =
    "\nWriters may open the trial again.\n"
    "\nExample:\n  stepwell admin unarchive my-run\n";
constexpr char kDeleteExamples[] =
    "\nIts samples, rollups and series go for good. Its number and name stay taken, so that "
    "nothing "
    "else is\never added under them. Refused while it is being written: archive it first.\n"
    "\nExamples:\n"
    "  stepwell admin delete my-run\n"
    "  stepwell admin delete id:7 --yes --json\n";

int Archive(const char* command, const char* examples, bool archived,
            const std::vector<std::string>& args, Streams streams) {
  CommandOptions options(command, "TRIAL", examples);
  options.Value("project", "P", "the project of TRIAL (default)");
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  const absl::StatusOr<v1::TrialRef> trial = ParseTrialRef(options.argument(), options.project());
  if (!trial.ok()) return options.UsageError(trial.status(), streams);
  v1::ArchiveTrialRequest request;
  *request.mutable_trial() = *trial;
  request.set_archived(archived);
  MasterClient master(options.master());
  const absl::StatusOr<v1::ArchiveTrialResponse> response = master.ArchiveTrial(request);
  if (!response.ok()) {
    return ReportTrialFailure(response.status(), *trial, master, options.server(), streams);
  }
  const char* what = response->archived()
                         ? " is archived: it can be read, its writers are refused.\n"
                         : " is not archived: its writers may open it again.\n";
  streams.out << (options.json() ? ToJson(*response).dump(2) + "\n"
                                 : Printable(options.argument()) + what);
  return kExitOk;
}

// Asks the person at the terminal; false when the answer is not yes.
bool Confirm(const v1::GetTrialResponse& response, Streams streams) {
  const v1::Trial& trial = response.trial();
  streams.err << "Trial " << TrialName(trial) << " (id:" << trial.trial_id()
              << "): " << Plural(trial.sample_count(), "sample") << " in "
              << CountText(trial.series_count()) << " series, from "
              << TimeText(trial.first_sample_time_us()) << " to "
              << TimeText(trial.last_sample_time_us()) << ".\n";
  return IsConfirmed(streams.err, "All of it goes for good. Delete it?");
}

std::string DeletedText(const std::string& trial, const v1::DeleteTrialResponse& response) {
  return absl::StrCat(
      Printable(trial), " (id:", response.trial_id(),
      ") is deleted: ", Plural(response.sample_count(), "sample"), ", ",
      ValueText(static_cast<double>(response.byte_count()), "bytes"),
      response.done() ? " went.\n" : ". Nobody reads it any more; its rows go by and by.\n");
}

}  // namespace

int RunAdminArchive(const std::vector<std::string>& args, Streams streams) {
  return Archive("admin archive", kArchiveExamples, true, args, streams);
}

int RunAdminUnarchive(const std::vector<std::string>& args, Streams streams) {
  return Archive("admin unarchive", kUnarchiveExamples, false, args, streams);
}

int RunAdminDelete(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("admin delete", "TRIAL", kDeleteExamples);
  options.Value("project", "P", "the project of TRIAL (default)");
  options.Flag("yes", "do not ask; needed where standard input is no terminal");
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  v1::DeleteTrialRequest request;
  const absl::StatusOr<v1::TrialRef> trial = ParseTrialRef(options.argument(), options.project());
  if (!trial.ok()) return options.UsageError(trial.status(), streams);
  *request.mutable_trial() = *trial;
  MasterClient master(options.master());
  if (!options.Has("yes")) {
    if (isatty(STDIN_FILENO) == 0) {
      return options.UsageError(
          absl::InvalidArgumentError(
              "nobody can be asked here, standard input is no terminal; give --yes"),
          streams);
    }
    v1::GetTrialRequest of_trial;
    *of_trial.mutable_trial() = *trial;
    const absl::StatusOr<v1::GetTrialResponse> found = master.GetTrial(of_trial);
    if (!found.ok()) {
      return ReportTrialFailure(found.status(), *trial, master, options.server(), streams);
    }
    // What was confirmed, even if another gets the name meanwhile.
    request.mutable_trial()->Clear();
    request.mutable_trial()->set_trial_id(found->trial().trial_id());
    if (!Confirm(*found, streams)) {
      streams.err << "stepwell: nothing was deleted\n";
      return kExitFailed;
    }
  }
  absl::StatusOr<v1::DeleteTrialResponse> response = absl::UnknownError("");
  {
    const Progress progress("deleting");
    response = master.DeleteTrial(request);
  }
  if (!response.ok()) {
    return ReportTrialFailure(response.status(), *trial, master, options.server(), streams);
  }
  streams.out << (options.json() ? ToJson(*response).dump(2) + "\n"
                                 : DeletedText(options.argument(), *response));
  return kExitOk;
}

}  // namespace stepwell::cli
