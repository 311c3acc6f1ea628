// RunBash: a script as a person would type it, for tests of what docs show. Header only.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace stepwell::testing {

struct Answered {
  int exit_code = -1;
  std::string output;
};

// `script`, which is kept as a file in `folder`; what it writes, and how it ended.
inline Answered RunBash(const std::string& folder, const std::string& script) {
  const std::string file = folder + "/script";
  std::ofstream(file) << script;
  FILE* pipe = popen(("timeout 60 bash " + file + " 2>&1").c_str(), "r");
  Answered answered;
  char block[4096];
  std::size_t count = 0;
  while ((count = fread(block, 1, sizeof block, pipe)) > 0) answered.output.append(block, count);
  const int status = pclose(pipe);
  answered.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return answered;
}

}  // namespace stepwell::testing
