// `stepwell run`: a program with its recorder's settings.
#pragma once

#include <string>
#include <vector>

#include "client/cli/command.h"

namespace stepwell::cli {

// Does not return where it becomes the program that `args` name, those after "run".
int RunProgram(const std::vector<std::string>& args, Streams streams);

}  // namespace stepwell::cli
