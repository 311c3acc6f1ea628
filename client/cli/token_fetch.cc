// stepwell token fetch: a token of one trial, from whoever may write it. For launchers.
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "client/cli/cap_units.h"
#include "client/cli/command.h"
#include "client/cli/master_client.h"
#include "client/cli/options.h"
#include "client/cli/proto_json.h"
#include "client/cli/terminal.h"
#include "client/cli/units.h"

namespace stepwell::cli {
namespace {

constexpr char kExamples[] =
    "\nWhat STEPWELL_TOKEN, or this client's certificate, grants to write gives a token that "
    "grants to "
    "ingest\none trial of it and nothing else. It goes to standard output and is told this once. "
    "It ends "
    "by itself,\nand with what it was fetched with; shown again, it fetches the next one.\n"
    "\nExamples:\n"
    "  STEPWELL_TOKEN=$(stepwell token fetch --trial vision/run-7)   in a launcher, before a "
    "training\n"
    "  stepwell token fetch --trial id:7 --expires 12h --json\n";

// "PROJECT/NAME" or "id:7", as grants name a trial.
absl::StatusOr<v1::TrialRef> ParseTrialPlace(const std::string& option, const std::string& text) {
  v1::TrialRef trial;
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "id:")) {
    std::int64_t id = 0;
    if (absl::SimpleAtoi(rest, &id) && id > 0) {
      trial.set_trial_id(id);
      return trial;
    }
  } else if (const auto slash = rest.find('/');
             slash != absl::string_view::npos && slash > 0 && slash + 1 < rest.size()) {
    trial.set_project(std::string(rest.substr(0, slash)));
    trial.set_external_id(std::string(rest.substr(slash + 1)));
    return trial;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(option, " is '", text, "'; allowed: PROJECT/NAME, or id: and a number from 1"));
}

}  // namespace

int RunTokenFetch(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("token fetch", "", kExamples);
  options.Value("trial", "PROJECT/NAME", "of which trial, which need not be there yet; or id:7");
  options.Value("expires", "AGE", "how long it lasts: 1m to 1d, as the master allows (1h)");
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  v1::FetchIngestTokenRequest request;
  absl::StatusOr<v1::TrialRef> trial = ParseTrialPlace("--trial", options.Text("trial"));
  if (!trial.ok()) return options.UsageError(trial.status(), streams);
  *request.mutable_trial() = *std::move(trial);
  if (options.Has("expires")) {
    const absl::StatusOr<std::int64_t> seconds = ParseAge("--expires", options.Text("expires"));
    if (!seconds.ok()) return options.UsageError(seconds.status(), streams);
    request.set_lifetime_seconds(*seconds);
  }
  MasterClient master(options.master());
  const absl::StatusOr<v1::FetchIngestTokenResponse> response = master.FetchIngestToken(request);
  if (!response.ok()) return ReportFailure(response.status(), options.server(), streams);
  if (options.json()) {
    streams.out << ToJson(*response).dump(2) << "\n";
    return kExitOk;
  }
  const v1::Token& token = response->token();
  streams.out << Printable(response->text()) << "\n";
  streams.err << "Token " << Printable(token.token_id()) << " ("
              << Printable(absl::StrJoin(token.grants(), ", ")) << "), expires "
              << TimeText(token.expires_time_us()) << ", made by " << Printable(token.made_by())
              << ".\n";
  return kExitOk;
}

}  // namespace stepwell::cli
