#include "client/cli/spool_in_use.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/steady_time.h"
#include "client/agent/server_address.h"

namespace stepwell::cli {
namespace {

// Its agent sends none of it: it names no master, or none that can be.
bool IsKept(const agent::SurveyedWriter& writer) {
  const std::string& server = writer.identity.server;
  return !server.empty() && !IsServerAddress(server);
}

bool Waits(const agent::SurveyedWriter& writer) {
  return writer.trouble.empty() && !writer.is_done;
}

bool AnyLives(const agent::SpoolSurvey& survey) {
  return std::any_of(survey.writers.begin(), survey.writers.end(),
                     [](const auto& writer) { return writer.is_live; });
}

bool AnyKept(const agent::SpoolSurvey& survey) {
  return std::any_of(survey.writers.begin(), survey.writers.end(),
                     [](const auto& writer) { return Waits(writer) && IsKept(writer); });
}

bool AnySent(const agent::SpoolSurvey& survey) {
  return std::any_of(survey.writers.begin(), survey.writers.end(),
                     [](const auto& writer) { return Waits(writer) && !IsKept(writer); });
}

std::string ServedReason(const agent::SpoolSurvey& survey) {
  const bool is_seen = survey.agent_pid != 0;
  const std::string stop =
      is_seen ? absl::StrCat("stop it first ('kill ", survey.agent_pid, "')") : "stop it first";
  const std::string serves = absl::StrCat(
      "an agent (", is_seen ? absl::StrCat("process ", survey.agent_pid) : "of another container",
      ") serves ", survey.root);
  if (!AnyKept(survey)) {
    return absl::StrCat(serves, " and sends what it holds; ", stop,
                        " where another master is to have it, or with another token");
  }
  return absl::StrCat(
      serves, " and sends ", AnySent(survey) ? "not all" : "none",
      " of it: it was recorded offline. One that a training started ends by itself, "
      "any other goes on: ",
      stop, ", then run the same command again");
}

}  // namespace

absl::StatusOr<agent::SpoolSurvey> AwaitLeavingAgent(agent::SpoolSurvey survey,
                                                     const std::string& place,
                                                     absl::Duration patience) {
  constexpr absl::Duration kPollInterval = absl::Milliseconds(50);
  const SteadyTime deadline = SteadyTime::Now() + patience;
  while (survey.is_served && !AnyLives(survey) && AnyKept(survey) && !AnySent(survey) &&
         !deadline.HasPassed()) {
    absl::SleepFor(kPollInterval);
    STEPWELL_ASSIGN_OR_RETURN(survey, agent::SurveySpool(place));
  }
  return survey;
}

std::string ReasonToRefuse(const agent::SpoolSurvey& survey) {
  for (const agent::SurveyedWriter& writer : survey.writers) {
    if (!writer.is_live || (survey.is_served && !IsKept(writer))) continue;
    return absl::StrCat(
        "a process that records into ", survey.root, " lives",
        writer.pid == 0 ? "" : absl::StrCat(" (", writer.pid, ")"), "; ",
        survey.is_served ? "it records offline: run this again when it has ended"
                         : absl::StrCat("'stepwell agent --spool-dir ", survey.root, "' ships it"));
  }
  return survey.is_served ? ServedReason(survey) : std::string();
}

}  // namespace stepwell::cli
