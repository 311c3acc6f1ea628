// The subcommands that look into spool directories themselves, with the agent's eyes. They are part of
// the executable, not of the command line's library: only main.cc and these know both.
#pragma once

#include <string>
#include <vector>

#include "client/cli/command.h"

namespace stepwell::cli {

int RunAgentStatus(const std::vector<std::string>& args, Streams streams);
int RunUpload(const std::vector<std::string>& args, Streams streams);

}  // namespace stepwell::cli
