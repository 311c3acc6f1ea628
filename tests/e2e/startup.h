// StartupTest: how `stepwell serve` ends that cannot start, and what it says then.
#pragma once

#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/e2e/spine.h"
#include "tests/support/child_process.h"

namespace stepwell::testing {

inline std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class StartupTest : public SpineTest {
 protected:
  // How `stepwell serve FLAGS...` ends; what it printed is in said_.
  std::string Serve(std::vector<std::string> flags,
                    const std::map<std::string, std::string>& environment = {}) {
    std::vector<std::string> words = prefix_;
    words.insert(words.end(), {program_, "serve"});
    words.insert(words.end(), flags.begin(), flags.end());
    const std::string log = scratch_ / absl::StrCat("said-", ++count_);
    ChildProcess serve;
    serve.Start(words, environment, log);
    const std::string ending = serve.Wait(absl::Seconds(60));
    said_ = ReadAll(log);
    return ending;
  }

  int count_ = 0;
  std::string said_;
  std::string program_ = BuiltProgram("stepwell");
  // Words before the program's own.
  std::vector<std::string> prefix_;
  const std::vector<std::string> anywhere_{"--grpc-listen=127.0.0.1:0",
                                           "--http-listen=127.0.0.1:0"};
  std::vector<std::string> Anywhere(const std::string& more) {
    std::vector<std::string> flags = anywhere_;
    flags.push_back(more);
    return flags;
  }
};

}  // namespace stepwell::testing
