// AgentOptions: the settings of `stepwell agent`.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/tls/tls_reload.h"
#include "client/agent/sensors/sensor_selection.h"

namespace stepwell::agent {

struct AgentOptions {
  // Of writers that name none: HOST:PORT, or "offline": what they record stays in the spool.
  std::string server;
  // Of the connections to all masters; null: plain.
  std::shared_ptr<TlsReload> tls;
  // The root below which recorders make their writers.
  std::string spool_dir;
  // With a trial, this machine is sampled for it: a name, or "id:7".
  std::string trial;
  std::string project = "default";
  std::string attempt_key;
  std::string token;
  // Where this agent runs: of samplers of which no recorder says it.
  std::map<std::string, std::string> placement;
  absl::Duration frame_interval = absl::Milliseconds(100);
  // Which system metrics are sampled, and how often, unless the trial says so itself.
  SensorSelection selection;
  // Exits once nothing has been live and all was acked for so long; infinite = never.
  absl::Duration idle_exit = absl::InfiniteDuration();
  // One agent of all users: `spool_dir` is the system root, in which each user has his own.
  bool system = false;
  // Samples this machine for each trial that has a live recorder here, unless that asks for none.
  bool auto_sampling = true;
  // Started by a recorder: a process of its own that nobody waits for, with its log in the spool
  // directory; what is done is removed when it ends.
  bool on_demand = false;
  // `spool_dir` is a private root (private_root.h), which goes when this agent ends with nothing left.
  bool removes_root = false;
  // Of all spools together; the default is also held to 5 % of what the file system has free.
  std::int64_t spool_bytes_max = std::int64_t{1} << 30;
  // What no master took for so long is given up.
  absl::Duration spool_age_max = absl::Hours(30 * 24);
  // fdatasync of a frame before it is sent, instead of within 500 ms.
  bool sync_before_send = false;
  // How long a stop may take to send what is left.
  absl::Duration stop_wait = absl::Seconds(5);
  // Every writer found goes to `server`, whatever it asked for ("offline" too); no machine is
  // sampled; Run returns when all of it is acked or refused, or after `leave_after` without an ack.
  bool upload = false;
  // As TraceSender::Options.
  bool sends_named_files = true;
  // Gives up once no recorder lives, something is unacked, and no ack came for so long; the spool
  // stays for the next agent. Infinite = never.
  absl::Duration leave_after = absl::InfiniteDuration();
};

struct ParsedOptions {
  AgentOptions options;
  // Set: print it and exit 0.
  std::string help;
};

// From the command line, and STEPWELL_SERVER and STEPWELL_SPOOL_DIR where a flag is absent. Errors
// are kInvalidArgument (usage) or kFailedPrecondition (a value that cannot be: configuration); they
// name the flag and what is allowed.
absl::StatusOr<ParsedOptions> ParseAgentOptions(const std::vector<std::string>& arguments);

}  // namespace stepwell::agent
