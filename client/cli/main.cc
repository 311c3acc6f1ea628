// The executable `stepwell`: the one place that links server, agent and subcommands.
#include <iostream>
#include <string>
#include <vector>

#include "client/cli/command.h"
#ifdef STEPWELL_HAS_SERVE
#include "server/serve_main.h"
#endif
#ifdef STEPWELL_HAS_AGENT
#include "client/agent/agent_main.h"
#endif

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
#ifdef STEPWELL_HAS_SERVE
  if (!args.empty() && args[0] == "serve") return stepwell::ServeMain(argc - 1, argv + 1);
#endif
#ifdef STEPWELL_HAS_AGENT
  if (!args.empty() && args[0] == "agent") return stepwell::AgentMain(argc - 1, argv + 1);
#endif
  return stepwell::cli::RunCommandLine(args, {std::cout, std::cerr});
}
