#include "tests/faults/small_memory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace stepwell::faults {
namespace {

bool Write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  return static_cast<bool>(file << text << std::flush);
}

// The number behind `key` in a file of keys and numbers.
std::int64_t NumberOf(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  std::string word;
  std::int64_t number = 0;
  while (file >> word >> number) {
    if (word == key) return number;
  }
  return -1;
}

}  // namespace

SmallMemory::SmallMemory(const std::string& name, std::int64_t bytes) {
  for (const auto& [root, bound, events] :
       {std::array<const char*, 3>{"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                   "memory.oom_control"},
        std::array<const char*, 3>{"/sys/fs/cgroup", "memory.max", "memory.events"}}) {
    path_ = absl::StrCat(root, "/stepwell-test-", getpid(), "-", name);
    if (mkdir(path_.c_str(), 0755) != 0) {
      trouble_ = absl::StrCat("no memory cgroup can be made: ", std::strerror(errno));
      continue;
    }
    events_ = absl::StrCat(path_, "/", events);
    trouble_ = Write(absl::StrCat(path_, "/", bound), absl::StrCat(bytes)) &&
                       NumberOf(events_, "oom_kill") >= 0
                   ? ""
                   : "the memory cgroup takes no bound";
    if (trouble_.empty()) return;
    rmdir(path_.c_str());
  }
}

SmallMemory::~SmallMemory() {
  hog_.Kill();
  testing::Eventually([&] { return rmdir(path_.c_str()) == 0 || errno != EBUSY; },
                      absl::Seconds(5));
}

std::int64_t SmallMemory::kill_count() const { return NumberOf(events_, "oom_kill"); }

bool SmallMemory::Take(pid_t pid) const {
  return Write(path_ + "/cgroup.procs", absl::StrCat(pid));
}

std::string SmallMemory::Kill(pid_t victim, const std::function<bool()>& is_gone,
                              const std::string& log) {
  const std::int64_t before = kill_count();
  if (!Write(absl::StrCat("/proc/", victim, "/oom_score_adj"), "1000")) return "no preference";
  if (!Take(victim)) return "not moved";
  hog_.Start({testing::BuiltProgram("memory_hog"), "--cgroup", path_ + "/cgroup.procs"}, {}, log);
  const bool killed = testing::Eventually(is_gone, absl::Seconds(30));
  const std::string hog = hog_.Wait(absl::ZeroDuration());
  hog_.Kill();
  if (killed && kill_count() > before) return "";
  return absl::StrCat("hog: ", hog, ", kills: ", kill_count() - before);
}

}  // namespace stepwell::faults
