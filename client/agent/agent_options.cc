#include "client/agent/agent_options.h"

#include <unistd.h>

#include <cstdlib>
#include <cxxopts.hpp>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/agent/server_address.h"
#include "client/recorder/src/placement.h"
#include "client/recorder/src/spool_roots.h"

namespace stepwell::agent {
namespace {

// Where `stepwell serve` listens unless told otherwise.
constexpr char kServerDefault[] = "127.0.0.1:7817";

// Idle, a process costs nothing that matters, and a script of short runs starts it once.
constexpr absl::Duration kOnDemandIdleExit = absl::Seconds(60);
// A master that is restarted, or moved, is back by then.
constexpr absl::Duration kOnDemandLeave = absl::Minutes(10);

constexpr char kExamples[] = R"(
Examples:
  # Ship what the training processes of this machine record, and sample the machine for a trial:
  stepwell agent --spool-dir /tmp/stepwell --trial resnet50-a

  # The same for a trial known by number, sampled four times a second; ends by itself when the
  # training has ended and all of it is stored:
  stepwell agent --server 127.0.0.1:7817 --spool-dir /tmp/stepwell --trial id:7 \
      --interval 250ms --once-idle-exit 10

  # One for all users of the machine, from a service manager, as root:
  stepwell agent --system --server 127.0.0.1:7817

  # As a recorder starts it: in the background, until nothing is left to do for a minute:
  stepwell agent --spool-dir /tmp/stepwell --on-demand

A recorder names its master itself; --server is for those that do not. Each trial that records here has
the machine sampled for it, unless its recorder asks for none.

Exit codes: 0 ended as asked (also when another agent serves the directory already),
64 wrong usage, 71 no process could be made, 73 the spool directory cannot be made or used, 78 a setting that cannot be.
)";

cxxopts::Options Flags() {
  cxxopts::Options flags("stepwell agent",
                         "Ships what recorders write below a spool directory to the master.\n"
                         "`stepwell agent status` tells what waits here, and who ships it.\n");
  flags.add_options()  //
      ("server",
       "the master for recorders that name none, or offline: keep what they record in "
       "the spool (or STEPWELL_SERVER; default 127.0.0.1:7817)",
       cxxopts::value<std::string>(), "HOST:PORT")  //
      ("spool-dir",
       "where recorders write (or STEPWELL_SPOOL_DIR; default: where those of this user do by "
       "themselves, stepwell-UID in TMPDIR or /tmp)",
       cxxopts::value<std::string>(), "DIR")  //
      ("trial", "sample this machine for a trial, also while it does not record: NAME, or id:N",
       cxxopts::value<std::string>(), "TRIAL")                                      //
      ("no-auto-sampling", "sample this machine for no trial but that of --trial")  //
      ("project", "of the trial", cxxopts::value<std::string>()->default_value("default"),
       "NAME")  //
      ("attempt-key", "which start of the trial; default: its newest",
       cxxopts::value<std::string>(), "KEY")  //
      ("token",
       "deprecated, for others of the machine see it in ps until the agent overwrites it, some "
       "milliseconds: STEPWELL_TOKEN instead, which they never see; token of the sampler, where it "
       "is not the agent's own",
       cxxopts::value<std::string>(), "TOKEN")  //
      ("tls-ca",
       "PEM file with the CAs that sign masters' certificates: all connections are TLS then (or "
       "STEPWELL_TLS_CA)",
       cxxopts::value<std::string>(), "FILE")  //
      ("tls-cert",
       "PEM file with this agent's own certificate, where masters ask for one (or "
       "STEPWELL_TLS_CERT)",
       cxxopts::value<std::string>(), "FILE")  //
      ("tls-key", "PEM file with its key (or STEPWELL_TLS_KEY)", cxxopts::value<std::string>(),
       "FILE")  //
      ("interval", "between two samples of the machine, 10ms-1h",
       cxxopts::value<std::string>()->default_value("1s"), "TIME")  //
      ("groups", "sample only these metric groups of cpu,disk,gpu,memory,network",
       cxxopts::value<std::string>()->default_value(""), "GROUPS")  //
      ("without", "leave these out, with commas between them; docs/metrics.md lists them",
       cxxopts::value<std::string>()->default_value(""), "METRICS")  //
      ("with", "take these that are taken on request only",
       cxxopts::value<std::string>()->default_value(""), "METRICS")  //
      ("frame-interval", "between two frames, 10ms-1s",
       cxxopts::value<std::string>()->default_value("100ms"), "TIME")  //
      ("once-idle-exit",
       "exit once all that recorded has ended and is stored for that long (the first is "
       "waited for up to 60 s)",
       cxxopts::value<std::string>(), "SECONDS")  //
      ("on-demand",
       "as a recorder starts it: go on in the background, log into DIR/f1/agent.log, exit when "
       "idle "
       "for a minute (STEPWELL_AGENT_IDLE_EXIT=SECONDS), leave after ten minutes in which no "
       "master "
       "takes what is left (STEPWELL_AGENT_LEAVE=SECONDS)")  //
      ("remove-root",
       "with --on-demand: remove DIR when nothing is left in it, where it is one that a recorder "
       "made "
       "for itself alone (stepwell-UID-XXXXXX)")  //
      ("system",
       "serve all users of this machine, as root: each records below his own u<uid> in "
       "/run/stepwell "
       "(or STEPWELL_SYSTEM_ROOT)")  //
      ("spool-bytes-max", "bound of all spools, at least 1048576; default 1 GiB",
       cxxopts::value<std::string>(), "BYTES")  //
      ("spool-age-max",
       "what no master took for so long is given up, as a gap, 1h-87600h; nothing within ten "
       "minutes "
       "of an agent's start, or of the last that a master took of the same writer",
       cxxopts::value<std::string>()->default_value("720h"), "TIME")  //
      ("sync-before-send",
       "put each frame on the disk before it is sent, instead of within 500 ms: a power loss then "
       "never leaves the master with more than the spool has")  //
      ("h,help", "this text");
  return flags;
}

std::string Given(const cxxopts::ParseResult& parsed, const char* flag, const char* variable) {
  if (parsed.count(flag) > 0) return parsed[flag].as<std::string>();
  const char* value = variable == nullptr ? nullptr : std::getenv(variable);
  return value == nullptr ? "" : value;
}

absl::Status Impossible(absl::string_view flag, absl::string_view value,
                        absl::string_view allowed) {
  return absl::FailedPreconditionError(absl::StrCat("--", flag, " ", value, ": must be ", allowed));
}

absl::Status ReadDuration(const cxxopts::ParseResult& parsed, const char* flag,
                          absl::Duration shortest, absl::Duration longest,
                          absl::Duration& duration) {
  const std::string text = parsed[flag].as<std::string>();
  if (!absl::ParseDuration(text, &duration) || duration < shortest || duration > longest) {
    return Impossible(flag, text,
                      absl::StrCat("a duration like 250ms, from ", absl::FormatDuration(shortest),
                                   " to ", absl::FormatDuration(longest)));
  }
  return absl::OkStatus();
}

absl::Status ReadSeconds(const char* variable, absl::Duration& duration) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return absl::OkStatus();
  double seconds = 0;
  if (!absl::SimpleAtod(text, &seconds) || !(seconds >= 0 && seconds <= 86400)) {
    return absl::FailedPreconditionError(
        absl::StrCat(variable, " ", text, ": must be a number of seconds from 0 to 86400"));
  }
  duration = absl::Seconds(seconds);
  return absl::OkStatus();
}

absl::Status ReadOnDemand(const cxxopts::ParseResult& parsed, AgentOptions& options) {
  options.on_demand = parsed.count("on-demand") > 0;
  if (!options.on_demand) return absl::OkStatus();
  // It leaves the directory that it was started in.
  if (!absl::StartsWith(options.spool_dir, "/")) {
    return Impossible("spool-dir", options.spool_dir, "an absolute path, with --on-demand");
  }
  options.removes_root = parsed.count("remove-root") > 0;
  if (options.idle_exit == absl::InfiniteDuration()) options.idle_exit = kOnDemandIdleExit;
  options.leave_after = kOnDemandLeave;
  STEPWELL_RETURN_IF_ERROR(ReadSeconds("STEPWELL_AGENT_IDLE_EXIT", options.idle_exit));
  return ReadSeconds("STEPWELL_AGENT_LEAVE", options.leave_after);
}

// Where recorders of this user write that are told nothing.
std::string DefaultSpoolDir() {
  recorder::RootSurroundings around;
  around.environment = [](const char* name) { return std::getenv(name); };
  around.working_directory = "/";
  around.user = geteuid();
  around.is_served = [](const std::string& /*root*/, bool /*may_be_own*/) { return false; };
  for (const recorder::SpoolRoot& root : recorder::ListRoots("", around)) {
    if (root.kind == recorder::RootKind::kDefault) return root.path;
  }
  return "";
}

// Where recorders look for a system agent.
constexpr char kSystemRoot[] = "/run/stepwell";

absl::Status ReadSystem(const cxxopts::ParseResult& parsed, AgentOptions& options) {
  options.system = true;
  for (const char* flag : {"spool-dir", "trial", "on-demand"}) {
    if (parsed.count(flag) == 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag, " with --system: all record below its root, what they like"));
  }
  const char* root = std::getenv("STEPWELL_SYSTEM_ROOT");
  options.spool_dir = root == nullptr || *root == '\0' ? kSystemRoot : root;
  return absl::OkStatus();
}

absl::Status ReadNumbers(const cxxopts::ParseResult& parsed, AgentOptions& options) {
  if (parsed.count("once-idle-exit") > 0) {
    const std::string text = parsed["once-idle-exit"].as<std::string>();
    double seconds = 0;
    if (!absl::SimpleAtod(text, &seconds) || !(seconds >= 0 && seconds <= 86400)) {
      return Impossible("once-idle-exit", text, "a number of seconds from 0 to 86400");
    }
    options.idle_exit = absl::Seconds(seconds);
  }
  if (parsed.count("spool-bytes-max") > 0) {
    const std::string text = parsed["spool-bytes-max"].as<std::string>();
    if (!absl::SimpleAtoi(text, &options.spool_bytes_max) || options.spool_bytes_max < 1 << 20) {
      return Impossible("spool-bytes-max", text, "a number of bytes, at least 1048576");
    }
  }
  return absl::OkStatus();
}

absl::Status ReadSelection(const cxxopts::ParseResult& parsed, SensorSelection& selection) {
  const auto text = [&](const char* flag) { return parsed[flag].as<std::string>(); };
  // Its messages begin with the name of a flag.
  const absl::StatusOr<SensorSelection> chosen =
      SensorSelection::Parse({.groups = text("groups"),
                              .without = text("without"),
                              .with = text("with"),
                              .interval = text("interval")});
  if (!chosen.ok())
    return absl::FailedPreconditionError("--" + std::string(chosen.status().message()));
  selection = *chosen;
  return absl::OkStatus();
}

absl::Status CheckServer(const std::string& server) {
  if (server == kOffline || IsServerAddress(server)) return absl::OkStatus();
  return Impossible("server", server, kServerAllowed);
}

absl::Status CheckTrial(const std::string& trial) {
  std::int64_t id = 0;
  if (absl::StartsWith(trial, "id:") && (!absl::SimpleAtoi(trial.substr(3), &id) || id < 1)) {
    return Impossible("trial", trial, "a name, or id: and a number from 1");
  }
  if (trial.size() > 256) return Impossible("trial", trial, "at most 256 bytes");
  return absl::OkStatus();
}

// Told at once, not by a log: an agent on demand has left its trial by then.
absl::Status ReadCertificates(const cxxopts::ParseResult& parsed, AgentOptions& options) {
  TlsFiles files = ClientTls({Given(parsed, "tls-ca", nullptr), Given(parsed, "tls-cert", nullptr),
                              Given(parsed, "tls-key", nullptr)});
  if (files.empty()) return absl::OkStatus();
  if (absl::Status checked = CheckClientTls(files); !checked.ok()) {
    return absl::FailedPreconditionError(checked.message());
  }
  // An agent on demand goes to another directory.
  for (std::string* file : {&files.ca, &files.cert, &files.key}) {
    if (!file->empty()) *file = std::filesystem::absolute(*file).string();
  }
  auto opened = TlsReload::Open(std::move(files), TlsSide::kClient, RealClock::Get());
  if (!opened.ok()) return absl::FailedPreconditionError(opened.status().message());
  options.tls = *std::move(opened);
  return absl::OkStatus();
}

absl::Status Fill(const cxxopts::ParseResult& parsed, AgentOptions& options) {
  options.server = Given(parsed, "server", "STEPWELL_SERVER");
  options.spool_dir = Given(parsed, "spool-dir", "STEPWELL_SPOOL_DIR");
  options.trial = Given(parsed, "trial", nullptr);
  options.project = parsed["project"].as<std::string>();
  options.attempt_key = Given(parsed, "attempt-key", nullptr);
  options.token = Given(parsed, "token", nullptr);
  options.placement = recorder::PlacementOf([](const char* name) { return std::getenv(name); });
  options.sync_before_send = parsed.count("sync-before-send") > 0;
  options.auto_sampling = parsed.count("no-auto-sampling") == 0;
  if (options.server.empty()) options.server = kServerDefault;
  if (parsed.count("system") > 0) STEPWELL_RETURN_IF_ERROR(ReadSystem(parsed, options));
  if (options.spool_dir.empty()) options.spool_dir = DefaultSpoolDir();
  STEPWELL_RETURN_IF_ERROR(CheckServer(options.server));
  STEPWELL_RETURN_IF_ERROR(CheckTrial(options.trial));
  STEPWELL_RETURN_IF_ERROR(ReadCertificates(parsed, options));
  STEPWELL_RETURN_IF_ERROR(ReadNumbers(parsed, options));
  STEPWELL_RETURN_IF_ERROR(ReadOnDemand(parsed, options));
  STEPWELL_RETURN_IF_ERROR(ReadSelection(parsed, options.selection));
  STEPWELL_RETURN_IF_ERROR(ReadDuration(parsed, "spool-age-max", absl::Hours(1),
                                        absl::Hours(10 * 365 * 24), options.spool_age_max));
  return ReadDuration(parsed, "frame-interval", absl::Milliseconds(10), absl::Seconds(1),
                      options.frame_interval);
}

}  // namespace

absl::StatusOr<ParsedOptions> ParseAgentOptions(const std::vector<std::string>& arguments) {
  std::vector<const char*> argv = {"stepwell agent"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  try {
    cxxopts::Options flags = Flags();
    const cxxopts::ParseResult parsed = flags.parse(static_cast<int>(argv.size()), argv.data());
    ParsedOptions result;
    if (parsed.count("help") > 0) {
      result.help = flags.help() + kExamples;
      return result;
    }
    if (!parsed.unmatched().empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("unexpected argument '", parsed.unmatched().front(), "'"));
    }
    STEPWELL_RETURN_IF_ERROR(Fill(parsed, result.options));
    return result;
  } catch (const cxxopts::exceptions::exception& error) {
    return absl::InvalidArgumentError(error.what());
  }
}

}  // namespace stepwell::agent
