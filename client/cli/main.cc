// The executable `stepwell`: the one place that links server, agent and subcommands. Beside it,
// agent_status.cc and upload.cc are subcommands that use the agent's rooms.
#include <iostream>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "base/monotonic_waits.h"
#include "base/process_secrets.h"
#include "client/cli/command.h"
#ifdef STEPWELL_HAS_SERVE
#include "server/serve_main.h"
#endif
#ifdef STEPWELL_HAS_AGENT
#include "client/agent/agent_main.h"
#include "client/cli/spool_commands.h"
#endif

int main(int argc, char** argv) {
  stepwell::UseMonotonicWaits();
#ifdef STEPWELL_RELEASE
  // Debian's abseil is built to look for cycles of locks at each lock; tests of other builds do.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
#endif
  const std::vector<std::string> args(argv + 1, argv + argc);
#ifdef STEPWELL_HAS_SERVE
  if (!args.empty() && args[0] == "serve") return stepwell::ServeMain(argc - 1, argv + 1);
#else
  if (!args.empty() && args[0] == "serve") {
    std::cerr << "stepwell: this program has no master: it came with the Python package, to record "
                 "and to read. "
                 "A build of Stepwell's checkout has one (deploy/quickstart.sh)\n";
    return stepwell::cli::kExitUsage;
  }
#endif
  if (stepwell::HoldsClientSecret(args)) stepwell::KeepMemoryPrivate();
#ifdef STEPWELL_HAS_AGENT
  const stepwell::cli::Streams streams{std::cout, std::cerr};
  if (args.size() > 1 && args[0] == "agent" && args[1] == "status") {
    return stepwell::cli::RunAgentStatus({args.begin() + 2, args.end()}, streams);
  }
  if (!args.empty() && args[0] == "upload") {
    return stepwell::cli::RunUpload({args.begin() + 1, args.end()}, streams);
  }
  if (!args.empty() && args[0] == "agent") return stepwell::AgentMain(argc - 1, argv + 1);
#endif
  return stepwell::cli::RunCommandLine(args, {std::cout, std::cerr});
}
