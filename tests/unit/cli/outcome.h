// Outcome: what a command line printed and how it exited.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "client/cli/command.h"

namespace stepwell::cli {

struct Outcome {
  int exit = 0;
  std::string out;
  std::string err;
};

inline Outcome RunWords(const std::vector<std::string>& args) {
  std::ostringstream out;
  std::ostringstream err;
  const int exit = RunCommandLine(args, {out, err});
  return {exit, out.str(), err.str()};
}

}  // namespace stepwell::cli
