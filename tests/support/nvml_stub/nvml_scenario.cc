#include "tests/support/nvml_stub/nvml_scenario.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <sstream>
#include <vector>

namespace stepwell::testing {
namespace {

// It and what follows stays when the process ends: a call that hangs may be in here then.
const auto& kDefaults = *new std::map<std::string, double>{{"number", -1},
                                                           {"util_gpu", 0},
                                                           {"util_memory", 0},
                                                           {"memory_total", 85899345920.0},
                                                           {"memory_used", 0},
                                                           {"memory_reserved", 0},
                                                           {"power_mw", 60000},
                                                           {"power_limit_mw", 700000},
                                                           {"energy_mj", 0},
                                                           {"temperature", 35},
                                                           {"memory_temperature", 40},
                                                           {"clock_sm_mhz", 1980},
                                                           {"clock_memory_mhz", 2619},
                                                           {"throttle", 0},
                                                           {"nvlink_tx_kib", 0},
                                                           {"nvlink_rx_kib", 0},
                                                           {"pcie_tx_bytes", 0},
                                                           {"pcie_rx_bytes", 0},
                                                           {"pcie_tx_kbs", 0},
                                                           {"pcie_rx_kbs", 0},
                                                           {"mig", 0},
                                                           {"gpm", 1},
                                                           {"pcie_counter_bits", 64}};

std::mutex g_mutex;
auto& g_scenario = *new std::shared_ptr<const Scenario>;

void ReadLine(std::istringstream& words, Scenario& scenario) {
  std::string what;
  words >> what;
  if (what == "gpus") {
    words >> scenario.gpu_count;
    return;
  }
  std::string which = "library";
  if (what == "gpu") words >> which;
  std::string key;
  words >> key;
  std::string call;
  if (key == "fail") {
    words >> call;
    words >> scenario.calls[which].fail[call];
  } else if (key == "slow") {
    words >> call;
    words >> scenario.calls[which].slow_ms[call];
  } else if (key == "hang") {
    words >> call;
    scenario.calls[which].hang[call] = true;
  } else {
    words >> scenario.values[which][key];
  }
}

double Evaluate(const std::string& text, double seconds) {
  const std::size_t plus = text.find('+', 1);
  if (plus != std::string::npos && text.find("/s") != std::string::npos) {
    return std::strtod(text.c_str(), nullptr) + std::strtod(text.c_str() + plus, nullptr) * seconds;
  }
  std::vector<double> steps;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    steps.push_back(std::strtod(part.c_str(), nullptr));
  }
  if (steps.empty()) return 0;
  return steps[std::min(static_cast<std::size_t>(std::max(seconds, 0.0)), steps.size() - 1)];
}

bool IsOf(const std::shared_ptr<const Scenario>& scenario, const struct stat& file) {
  return scenario != nullptr && scenario->inode == file.st_ino &&
         scenario->changed.tv_sec == file.st_mtim.tv_sec &&
         scenario->changed.tv_nsec == file.st_mtim.tv_nsec;
}

std::shared_ptr<const Scenario> ReadScenario(const char* path, const struct stat& file_stat) {
  auto scenario = std::make_shared<Scenario>();
  scenario->changed = file_stat.st_mtim;
  scenario->inode = file_stat.st_ino;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    ReadLine(words, *scenario);
  }
  return scenario;
}

// A library that lies beside a file `scenario` has that one: two of them are two machines in one
// process.
const char* ScenarioPath() {
  static const auto& beside = *new const std::string([] {
    Dl_info library{};
    if (dladdr(&g_mutex, &library) == 0 || library.dli_fname == nullptr) return std::string();
    std::string path = library.dli_fname;
    path.resize(path.rfind('/') + 1);
    path += "scenario";
    return access(path.c_str(), R_OK) == 0 ? path : std::string();
  }());
  return beside.empty() ? std::getenv("STEPWELL_NVML_SCENARIO") : beside.c_str();
}

}  // namespace

double Now() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// As this thread saw it last, so that eight GPUs do not wait for one lock.
thread_local std::shared_ptr<const Scenario> t_scenario;

std::shared_ptr<const Scenario> Seen() { return t_scenario == nullptr ? Current() : t_scenario; }

std::shared_ptr<const Scenario> Current() {
  const char* path = ScenarioPath();
  struct stat found {};
  if (path == nullptr || stat(path, &found) != 0) {
    if (t_scenario == nullptr) t_scenario = std::make_shared<Scenario>();
    return t_scenario;
  }
  if (IsOf(t_scenario, found)) return t_scenario;
  const std::lock_guard<std::mutex> lock(g_mutex);
  if (!IsOf(g_scenario, found)) g_scenario = ReadScenario(path, found);
  t_scenario = g_scenario;
  return t_scenario;
}

double ValueOf(const Scenario& scenario, int gpu, const std::string& key, double at) {
  const double since = at - static_cast<double>(scenario.changed.tv_sec) -
                       static_cast<double>(scenario.changed.tv_nsec) * 1e-9;
  for (const std::string& which : {std::to_string(gpu), std::string("*")}) {
    const auto values = scenario.values.find(which);
    if (values == scenario.values.end()) continue;
    const auto value = values->second.find(key);
    if (value != values->second.end()) return Evaluate(value->second, since);
  }
  const auto known = kDefaults.find(key);
  return known == kDefaults.end() ? 0 : known->second;
}

int Suffer(const std::string& which, const char* call) {
  while (true) {
    const std::shared_ptr<const Scenario> scenario = Current();
    bool hangs = false;
    for (const std::string& who : {which, std::string("*")}) {
      const auto found = scenario->calls.find(who);
      if (found == scenario->calls.end()) continue;
      const Call& faults = found->second;
      for (const std::string& name : {std::string(call), std::string("*")}) {
        if (faults.fail.count(name) > 0) return faults.fail.at(name);
        if (faults.slow_ms.count(name) > 0) usleep(1000u * faults.slow_ms.at(name));
        hangs = hangs || faults.hang.count(name) > 0;
      }
    }
    if (!hangs) return 0;
    usleep(2000);
  }
}

}  // namespace stepwell::testing
