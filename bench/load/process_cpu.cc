#include "bench/load/process_cpu.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace stepwell::bench {
namespace {

struct ProcessTimes {
  pid_t parent = 0;
  double cpu_seconds = 0;
};

// Fields of /proc/PID/stat behind the command's closing bracket: state, ppid, ..., utime, stime.
bool ReadTimes(const std::string& pid, ProcessTimes& times) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto bracket = text.rfind(')');
  if (bracket == std::string::npos) return false;
  std::istringstream rest(text.substr(bracket + 1));
  std::string field;
  std::vector<std::string> fields;
  while (rest >> field) fields.push_back(field);
  if (fields.size() < 15) return false;
  times.parent = std::stoi(fields[1]);
  // utime, stime and those of reaped children.
  double ticks = 0;
  for (int i = 11; i <= 14; ++i) ticks += std::stod(fields[static_cast<std::size_t>(i)]);
  times.cpu_seconds = ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
  return true;
}

}  // namespace

double TreeCpuSeconds(pid_t root) {
  std::map<pid_t, ProcessTimes> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    ProcessTimes times;
    if (name.find_first_not_of("0123456789") == std::string::npos && ReadTimes(name, times)) {
      all[std::stoi(name)] = times;
    }
  }
  std::set<pid_t> ours = {root};
  for (bool grew = true; grew;) {
    grew = false;
    for (const auto& [pid, times] : all) {
      if (ours.contains(times.parent) && ours.insert(pid).second) grew = true;
    }
  }
  double seconds = 0;
  for (const pid_t pid : ours) seconds += all[pid].cpu_seconds;
  return seconds;
}

}  // namespace stepwell::bench
