// NvmlScenario: what the stand-in for NVIDIA's library is told to answer: values by GPU and key, and
// what befalls its calls. Thread-safe. The format is described in nvml_stub.cc.
#pragma once

#include <sys/types.h>
#include <time.h>

#include <map>
#include <memory>
#include <string>

namespace stepwell::testing {

struct Call {
  std::map<std::string, int> fail;
  std::map<std::string, int> slow_ms;
  std::map<std::string, bool> hang;
};

struct Scenario {
  int gpu_count = 1;
  // "3" and "*": values as they were written, and faults.
  std::map<std::string, std::map<std::string, std::string>> values;
  std::map<std::string, Call> calls;
  timespec changed{};
  ino_t inode = 0;
};

double Now();
// The file's, looked at anew: once in each call, since a test moves a new file over the old one.
std::shared_ptr<const Scenario> Current();
// As this thread looked at it last.
std::shared_ptr<const Scenario> Seen();
double ValueOf(const Scenario& scenario, int gpu, const std::string& key, double at = Now());
// What the scenario does to a call on a GPU, or on all: its result, or 0 after waiting as long as it
// says.
int Suffer(const std::string& which, const char* call);

}  // namespace stepwell::testing
