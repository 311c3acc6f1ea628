// RunVariables: the options of `stepwell run` as the variables that a training program's recorder reads.
// What would not be understood there is refused here, before anything is started. Confined to one thread.
//
//   AddRunOptions(options);
//   if (std::optional<int> exit = options.Parse(SplitRunWords(args), streams)) return *exit;
//   const absl::StatusOr<RunVariables> variables = ReadRunVariables(options, around);
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/options.h"
#include "client/recorder/src/agent_launch.h"

namespace stepwell::cli {

// By name; what is not named stays as it is.
using RunVariables = std::map<std::string, std::string>;

void AddRunOptions(CommandOptions& options);

// Options end at the first word that is none, or at "--": what follows is the program's, whatever it
// looks like. The same words for the parser, with "--" where the program's begin; nothing follows an
// option that lacks its value.
std::vector<std::string> SplitRunWords(const std::vector<std::string>& args);

// `around` is where the program will be started. kInvalidArgument names the option, and says what is
// allowed. Looks whether directories and the agent's program are there.
absl::StatusOr<RunVariables> ReadRunVariables(const CommandOptions& options,
                                              const recorder::ProgramSurroundings& around);

}  // namespace stepwell::cli
