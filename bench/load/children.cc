#include "bench/load/children.h"

#include <signal.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace stepwell::bench {
namespace {

struct Children {
  absl::Mutex mu;
  std::map<pid_t, std::string> directory_of ABSL_GUARDED_BY(mu);
};

void EndAll();

// Never destroyed: it is used at exit.
Children& All() {
  static Children* const all = [] {
    std::atexit(EndAll);
    return new Children;
  }();
  return *all;
}

void End(pid_t pid, const std::string& directory) {
  kill(pid, SIGTERM);
  waitpid(pid, nullptr, 0);
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
}

void EndAll() {
  Children& all = All();
  absl::MutexLock lock(&all.mu);
  for (const auto& [pid, directory] : all.directory_of) End(pid, directory);
  all.directory_of.clear();
}

}  // namespace

void AdoptChild(pid_t pid, const std::string& directory) {
  Children& all = All();
  absl::MutexLock lock(&all.mu);
  all.directory_of[pid] = directory;
}

void EndChild(pid_t pid) {
  Children& all = All();
  absl::MutexLock lock(&all.mu);
  const auto found = all.directory_of.find(pid);
  if (found == all.directory_of.end()) return;
  End(pid, found->second);
  all.directory_of.erase(found);
}

void DisownChild(pid_t pid) {
  Children& all = All();
  absl::MutexLock lock(&all.mu);
  all.directory_of.erase(pid);
}

}  // namespace stepwell::bench
