#include "bench/load/process_cpu.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>

namespace stepwell::bench {
namespace {

struct ListedProcess {
  pid_t parent = 0;
  ProcessUse use;
};

// Fields of /proc/PID/stat behind the command's closing bracket, by proc(5)'s numbers less 3: state, ppid, ...
std::optional<ListedProcess> ReadProcess(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto bracket = text.rfind(')');
  if (bracket == std::string::npos) return std::nullopt;
  std::istringstream rest(text.substr(bracket + 1));
  std::string field;
  std::vector<std::string> fields;
  while (rest >> field) fields.push_back(field);
  if (fields.size() < 15) return std::nullopt;
  ListedProcess listed;
  listed.parent = std::stoi(fields[1]);
  listed.use.pid = std::stoi(pid);
  listed.use.minor_faults = std::stoll(fields[7]) + std::stoll(fields[8]);
  const double second = static_cast<double>(sysconf(_SC_CLK_TCK));
  listed.use.user_seconds = (std::stod(fields[11]) + std::stod(fields[13])) / second;
  listed.use.system_seconds = (std::stod(fields[12]) + std::stod(fields[14])) / second;
  return listed;
}

}  // namespace

std::vector<ProcessUse> TreeUse(pid_t root) {
  std::map<pid_t, ListedProcess> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (const auto listed = ReadProcess(name)) all[listed->use.pid] = *listed;
  }
  const auto first = all.find(root);
  if (first == all.end()) return {};
  std::vector<ProcessUse> uses = {first->second.use};
  std::set<pid_t> ours = {root};
  for (bool grew = true; grew;) {
    grew = false;
    for (const auto& [pid, listed] : all) {
      if (!ours.contains(listed.parent) || !ours.insert(pid).second) continue;
      uses.push_back(listed.use);
      grew = true;
    }
  }
  return uses;
}

double TreeCpuSeconds(pid_t root) {
  double seconds = 0;
  for (const ProcessUse& use : TreeUse(root)) seconds += use.user_seconds + use.system_seconds;
  return seconds;
}

}  // namespace stepwell::bench
