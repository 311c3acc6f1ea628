// stepwell caps get | set | preview | sweep: how long and how much is kept.
#include <unistd.h>

#include <optional>
#include <ostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "client/cli/cap_units.h"
#include "client/cli/caps_view.h"
#include "client/cli/master_client.h"
#include "client/cli/not_found.h"
#include "client/cli/options.h"
#include "client/cli/progress.h"
#include "client/cli/proto_json.h"

namespace stepwell::cli {
namespace {

constexpr char kPlaces[] =
    "\nWithout --project, --trial and --group: all trials. The narrowest place that sets a cap "
    "decides it:\nall trials < a project < a trial < a metric group.\n";
constexpr char kGetExamples[] =
    "\nExamples:\n"
    "  stepwell caps get\n"
    "  stepwell caps get --trial my-run --group gpu\n"
    "  stepwell caps get --project vision --json\n";
constexpr char kClearHelp[] = "leave these to the next wider place: raw-age, bytes, ...";
constexpr char kSetExamples[] =
    "\nAn age is such as 30d, 2y or 1h30m, bytes such as 50GiB; 'none' is no bound, --clear leaves "
    "it "
    "to the\nnext wider place. An age counts for what is merged from now on. 'stepwell caps "
    "preview' "
    "with the same\noptions says what would go; where the next sweep would remove something "
    "besides what goes anyway, it\nis shown, and asked for before.\n"
    "\nExamples:\n"
    "  stepwell caps set --raw-age 30d --rollup-age 2y\n"
    "  stepwell caps set --project vision --bytes 50GiB --samples 1M\n"
    "  stepwell caps set --trial id:7 --window 5m --clear raw-age,bytes\n";
constexpr char kPreviewExamples[] =
    "\nCaps that are given count as if they were set there, those of --clear as if they were not: "
    "what they\nleave to the next wider place may remove more. Without both: what is set.\n"
    "\nExamples:\n"
    "  stepwell caps preview\n"
    "  stepwell caps preview --project vision --bytes 10GiB\n"
    "  stepwell caps preview --trial id:7 --clear samples\n"
    "  stepwell caps preview --raw-age 30d --for-merged-rows --json\n";
constexpr char kSweepExamples[] =
    "\nThe master does so by itself, too, once a minute. Ages concern whole days of all trials: "
    "with "
    "a place\nnamed, bytes and samples alone are swept.\n"
    "\nExamples:\n"
    "  stepwell caps sweep\n"
    "  stepwell caps sweep --trial my-run --json\n";

void AddPlaceOptions(CommandOptions& options) {
  options.Value("project", "P", "the trials of this project; with --trial, the project of TRIAL");
  options.Value("trial", "TRIAL", "this trial: a name, or id:7 for a number");
  options.Value("group", "G", "only this metric group: gpu, cpu, timing, ...");
}

void AddCapOptions(CommandOptions& options) {
  for (const CapOption& cap : CapOptions()) options.Value(cap.name, cap.placeholder, cap.help);
}

absl::StatusOr<v1::CapsPlace> PlaceOf(const CommandOptions& options) {
  v1::CapsPlace place;
  if (options.Has("trial")) {
    absl::StatusOr<v1::TrialRef> trial = ParseTrialRef(options.Text("trial"), options.project());
    if (!trial.ok()) return trial.status();
    *place.mutable_trial() = *std::move(trial);
  } else if (options.Has("project")) {
    place.set_project(options.project());
  }
  place.set_metric_group(options.Text("group"));
  return place;
}

absl::StatusOr<v1::Caps> CapsOf(const CommandOptions& options) {
  v1::Caps caps;
  for (const CapOption& cap : CapOptions()) {
    if (!options.Has(cap.name)) continue;
    const absl::StatusOr<std::int64_t> value =
        cap.parse(absl::StrCat("--", cap.name), options.Text(cap.name));
    if (!value.ok()) return value.status();
    (caps.*cap.set)(*value);
  }
  return caps;
}

std::string CapNames() {
  return absl::StrJoin(CapOptions(), ", ", [](std::string* out, const CapOption& cap) {
    absl::StrAppend(out, cap.name);
  });
}

bool HasCap(const CommandOptions& options) {
  for (const CapOption& cap : CapOptions()) {
    if (options.Has(cap.name)) return true;
  }
  return false;
}

// The names that --clear gives, as fields.
template <typename Request>
absl::Status Clear(const CommandOptions& options, Request& request) {
  for (const std::string& text : options.Texts("clear")) {
    for (const absl::string_view name : absl::StrSplit(text, ',')) {
      const CapOption* found = nullptr;
      for (const CapOption& cap : CapOptions()) {
        if (name == cap.name) found = &cap;
      }
      if (found == nullptr) {
        return absl::InvalidArgumentError(
            absl::StrCat("--clear is '", name, "'; allowed: ", CapNames()));
      }
      if (options.Has(found->name)) {
        return absl::InvalidArgumentError(
            absl::StrCat("--", found->name, " and --clear ", found->name, " exclude each other"));
      }
      request.add_clear(found->field);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::SetCapsRequest> SetRequestOf(const CommandOptions& options) {
  v1::SetCapsRequest request;
  absl::StatusOr<v1::CapsPlace> place = PlaceOf(options);
  if (!place.ok()) return place.status();
  *request.mutable_place() = *std::move(place);
  absl::StatusOr<v1::Caps> caps = CapsOf(options);
  if (!caps.ok()) return caps.status();
  *request.mutable_caps() = *std::move(caps);
  if (absl::Status status = Clear(options, request); !status.ok()) return status;
  if (!HasCap(options) && request.clear().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "nothing is to be set; allowed: --clear CAP, and --CAP with a value, of ", CapNames()));
  }
  return request;
}

// Where `place` names an unknown trial, says which there are.
int Fail(const absl::Status& status, const v1::CapsPlace& place, MasterClient& master,
         const CommandOptions& options, Streams streams) {
  if (!place.has_trial()) return ReportFailure(status, options.server(), streams);
  return ReportTrialFailure(status, place.trial(), master, options.server(), streams);
}

// What the next sweep would remove if these were set, besides what it removes anyway.
absl::StatusOr<v1::PreviewCapsResponse> LookAhead(const v1::SetCapsRequest& set,
                                                  MasterClient& master) {
  const Progress progress("looking through the ledger for what would go");
  v1::PreviewCapsRequest request;
  *request.mutable_place() = set.place();
  *request.mutable_caps() = set.caps();
  *request.mutable_clear() = set.clear();
  STEPWELL_ASSIGN_OR_RETURN(v1::PreviewCapsResponse would, master.PreviewCaps(request));
  if (would.removals().empty()) return would;
  request.clear_caps();
  request.clear_clear();
  STEPWELL_ASSIGN_OR_RETURN(const v1::PreviewCapsResponse now, master.PreviewCaps(request));
  return RemovedBesides(would, now);
}

// An exit code where they are not to be set: a forgotten unit is seen before it is too late.
std::optional<int> AskBefore(const v1::SetCapsRequest& set, MasterClient& master,
                             const CommandOptions& options, Streams streams) {
  const absl::StatusOr<v1::PreviewCapsResponse> goes = LookAhead(set, master);
  if (!goes.ok()) {
    const int exit = Fail(goes.status(), set.place(), master, options, streams);
    if (absl::IsDeadlineExceeded(goes.status())) {
      streams.err << "stepwell: nothing was set; --yes sets without a look at what would go\n";
    }
    return exit;
  }
  if (goes->removals().empty()) return std::nullopt;
  streams.err << CapsRemoveText(set.place(), *goes, PaintFor(streams.err));
  if (isatty(STDIN_FILENO) == 0) {
    return options.UsageError(
        absl::InvalidArgumentError("nothing was set: nobody can be asked here, standard input is "
                                   "no terminal; give --yes if that is meant, or other caps"),
        streams);
  }
  if (IsConfirmed(streams.err, "Set them?")) return std::nullopt;
  streams.err << "stepwell: nothing was set\n";
  return kExitFailed;
}

}  // namespace

int RunCapsGet(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("caps get", "", absl::StrCat(kPlaces, kGetExamples));
  AddPlaceOptions(options);
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  const absl::StatusOr<v1::CapsPlace> place = PlaceOf(options);
  if (!place.ok()) return options.UsageError(place.status(), streams);
  v1::GetCapsRequest request;
  *request.mutable_place() = *place;
  MasterClient master(options.master());
  const absl::StatusOr<v1::GetCapsResponse> response = master.GetCaps(request);
  if (!response.ok()) return Fail(response.status(), *place, master, options, streams);
  streams.out << (options.json() ? CapsJson(*response)
                                 : CapsText(*place, *response, PaintFor(streams.out)));
  return kExitOk;
}

int RunCapsSet(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("caps set", "", absl::StrCat(kPlaces, kSetExamples));
  AddPlaceOptions(options);
  AddCapOptions(options);
  options.List("clear", "CAP,...", kClearHelp);
  options.Flag("yes", "do not look, and do not ask; wanted where standard input is no terminal");
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  const absl::StatusOr<v1::SetCapsRequest> request = SetRequestOf(options);
  if (!request.ok()) return options.UsageError(request.status(), streams);
  MasterClient master(options.master());
  if (!options.Has("yes")) {
    if (std::optional<int> exit = AskBefore(*request, master, options, streams)) return *exit;
  }
  const absl::StatusOr<v1::SetCapsResponse> response = master.SetCaps(*request);
  if (!response.ok()) return Fail(response.status(), request->place(), master, options, streams);
  streams.out << (options.json() ? CapsSetJson(*response)
                                 : CapsSetText(request->place(), *response, PaintFor(streams.out)));
  return kExitOk;
}

int RunCapsPreview(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("caps preview", "", absl::StrCat(kPlaces, kPreviewExamples));
  AddPlaceOptions(options);
  AddCapOptions(options);
  options.List("clear", "CAP,...", kClearHelp);
  options.Flag("for-merged-rows", "as if the ages had held when each row was merged");
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  const absl::StatusOr<v1::CapsPlace> place = PlaceOf(options);
  if (!place.ok()) return options.UsageError(place.status(), streams);
  v1::PreviewCapsRequest request;
  *request.mutable_place() = *place;
  if (HasCap(options)) {
    absl::StatusOr<v1::Caps> caps = CapsOf(options);
    if (!caps.ok()) return options.UsageError(caps.status(), streams);
    *request.mutable_caps() = *std::move(caps);
  }
  if (absl::Status status = Clear(options, request); !status.ok()) {
    return options.UsageError(status, streams);
  }
  request.set_for_merged_rows(options.Has("for-merged-rows"));
  MasterClient master(options.master());
  absl::StatusOr<v1::PreviewCapsResponse> response = absl::UnknownError("");
  {
    const Progress progress("looking through the ledger");
    response = master.PreviewCaps(request);
  }
  if (!response.ok()) return Fail(response.status(), *place, master, options, streams);
  streams.out << (options.json() ? ToJson(*response).dump(2) + "\n"
                                 : PreviewText(*response, PaintFor(streams.out)));
  return kExitOk;
}

int RunCapsSweep(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("caps sweep", "", absl::StrCat(kPlaces, kSweepExamples));
  AddPlaceOptions(options);
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  const absl::StatusOr<v1::CapsPlace> place = PlaceOf(options);
  if (!place.ok()) return options.UsageError(place.status(), streams);
  v1::SweepCapsRequest request;
  *request.mutable_place() = *place;
  MasterClient master(options.master());
  absl::StatusOr<v1::SweepCapsResponse> response = absl::UnknownError("");
  {
    const Progress progress("sweeping");
    response = master.SweepCaps(request);
  }
  if (absl::IsDeadlineExceeded(response.status())) {
    streams.err << "stepwell: " << response.status().message() << "\n";
    return kExitAgain;
  }
  if (!response.ok()) return Fail(response.status(), *place, master, options, streams);
  streams.out << (options.json() ? ToJson(*response).dump(2) + "\n"
                                 : SweepText(*response, PaintFor(streams.out)));
  return kExitOk;
}

}  // namespace stepwell::cli
