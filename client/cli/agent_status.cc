// stepwell agent status: what waits on this machine, and whether an agent ships it. Asks no master.
#include "client/cli/spool_commands.h"

#include <algorithm>
#include <ostream>

#include "absl/time/clock.h"
#include "client/agent/found_roots.h"
#include "client/agent/server_address.h"
#include "client/agent/spool_survey.h"
#include "client/cli/agent_status_view.h"
#include "client/cli/options.h"

namespace stepwell::cli {
namespace {

constexpr char kExamples[] =
    "\nLooks only: it works beside a running agent and on a copy of another machine's directory.\n"
    "Without --spool-dir: STEPWELL_SPOOL_DIR, else where recorders of this user write (below\n"
    "/run/stepwell, and stepwell-UID under TMPDIR and /tmp). Root sees all users' below\n"
    "/run/stepwell. Exits with 66 where --spool-dir names no spool directory.\n"
    "\nExamples:\n"
    "  stepwell agent status\n"
    "  stepwell agent status --spool-dir /tmp/stepwell-1000 --json\n";

std::string StateOf(const agent::SurveyedWriter& writer, bool is_served) {
  if (writer.is_done) return "stored";
  if (writer.identity.is_sampler) return !writer.is_closed && is_served ? "sampling" : "ended";
  if (writer.is_closed) return "ended";
  return writer.is_live ? "live" : "died";
}

SpooledWriter Shown(const agent::SurveyedWriter& found, const agent::SpoolSurvey& spool) {
  SpooledWriter writer;
  writer.writer = found.name;
  writer.trouble = found.trouble;
  if (!found.trouble.empty()) return writer;
  writer.project = found.identity.project;
  writer.trial = found.identity.trial;
  writer.is_sampler = found.identity.is_sampler;
  writer.rank = found.identity.rank;
  writer.state = StateOf(found, spool.is_served);
  writer.pid = found.pid;
  writer.worker_count = found.worker_count;
  writer.server = found.identity.server.empty() ? spool.links.server : found.identity.server;
  writer.is_server_unusable =
      !writer.server.empty() && writer.server != agent::kOffline && !IsServerAddress(writer.server);
  const auto trouble = spool.links.troubles.find(writer.server);
  if (trouble != spool.links.troubles.end()) writer.unreachable = trouble->second;
  writer.refusal = found.refusal;
  writer.spool_bytes = found.spool_bytes;
  writer.unacked_frames = found.unacked_frames;
  writer.unacked_samples = found.unacked_samples;
  writer.unacked_bytes = found.unacked_bytes;
  writer.unacked_since_us = found.unacked_since_us;
  writer.ring_events = found.ring_events;
  writer.ring_events_max = found.ring_events_max;
  writer.dropped_events = found.dropped_events;
  writer.rings_in_memory = found.rings_in_memory;
  writer.rings_missing = found.rings_missing;
  return writer;
}

SpoolStatus Shown(const agent::SpoolSurvey& survey) {
  SpoolStatus status;
  status.root = survey.root;
  status.is_served = survey.is_served;
  status.agent_pid = survey.agent_pid;
  for (const agent::SurveyedWriter& writer : survey.writers) {
    status.writers.push_back(Shown(writer, survey));
  }
  return status;
}

}  // namespace

int RunAgentStatus(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("agent status", "", kExamples, CommandOptions::Asks::kNobody);
  options.Value("spool-dir", "DIR", "look here only");
  if (std::optional<int> exit = options.Parse(args, streams)) return *exit;
  const bool is_given = options.Has("spool-dir");
  const agent::RootPlaces places = agent::RootPlaces::OfThisProcess();
  std::vector<agent::FoundRoot> roots;
  if (is_given) {
    roots.push_back({options.Text("spool-dir"), ""});
  } else {
    roots = agent::FindSpoolRoots(places);
  }
  std::vector<SpoolStatus> spools;
  for (const agent::FoundRoot& root : roots) {
    const absl::StatusOr<agent::SpoolSurvey> survey = agent::SurveySpool(root.path, root.served_by);
    if (survey.ok()) {
      spools.push_back(Shown(*survey));
    } else if (is_given || !absl::IsNotFound(survey.status())) {
      // One that was found may be gone since.
      streams.err << "stepwell agent status: " << survey.status().message() << "\n";
      return absl::IsNotFound(survey.status()) ? kExitNoInput : kExitFailed;
    }
  }
  const std::int64_t now_us = absl::ToUnixMicros(absl::Now());
  streams.out << (options.json() ? AgentStatusJson(spools, now_us)
                                 : AgentStatusText(spools, agent::DescribePlaces(places), now_us,
                                                   PaintFor(streams.out)));
  return kExitOk;
}

}  // namespace stepwell::cli
