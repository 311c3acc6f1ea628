// Holds each master and agent of each fault test to the checker's bounds, whoever started it: looks
// four times a second at the programs below this process and judges the most that it saw when the test
// has ended. Nothing calls it; it is there by being linked. That it saw somebody is looked at, too: a watch
// that looks past them would find nothing too much.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "tests/faults/checker/bounds.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {
namespace {

namespace fs = std::filesystem;

// Of a process that ends meanwhile: what there was.
std::string Text(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Each process and its parent.
std::map<int, int> ReadParents() {
  std::map<int, int> parents;
  std::error_code gone;
  for (fs::directory_iterator entry("/proc", gone), end; !gone && entry != end;
       entry.increment(gone)) {
    int pid = 0;
    if (!absl::SimpleAtoi(entry->path().filename().string(), &pid)) continue;
    const std::string stat = Text(entry->path() / "stat");
    const std::size_t name_end = stat.rfind(')');
    int parent = 0;
    if (name_end == std::string::npos || name_end + 4 >= stat.size()) continue;
    if (absl::SimpleAtoi(stat.substr(name_end + 4, stat.find(' ', name_end + 4) - name_end - 4),
                         &parent)) {
      parents[pid] = parent;
    }
  }
  return parents;
}

bool IsBelow(int pid, int ancestor, const std::map<int, int>& parents) {
  for (auto found = parents.find(pid); found != parents.end();
       found = parents.find(found->second)) {
    if (found->second == ancestor) return true;
  }
  return false;
}

// "serve", "agent", or "" where it is none of ours.
std::string Role(int pid) {
  const std::string words = Text(fs::path("/proc") / std::to_string(pid) / "cmdline");
  const std::size_t program_end = words.find('\0');
  if (program_end == std::string::npos) return "";
  if (!absl::EndsWith(words.substr(0, program_end), "/stepwell")) return "";
  const std::string word =
      words.substr(program_end + 1, words.find('\0', program_end + 1) - program_end - 1);
  return word == "serve" || word == "agent" ? word : "";
}

// What a master was given by `--memory-bytes=NMiB`, in KiB; 0 = nothing.
std::int64_t GivenKib(int pid) {
  constexpr char kOption[] = "--memory-bytes=";
  const std::string words = Text(fs::path("/proc") / std::to_string(pid) / "cmdline");
  const std::size_t at = words.find(kOption);
  if (at == std::string::npos) return 0;
  const std::size_t begin = at + sizeof(kOption) - 1;
  std::int64_t mib = 0;
  const std::size_t end = words.find("MiB", begin);
  return absl::SimpleAtoi(words.substr(begin, end - begin), &mib) ? mib << 10 : 0;
}

class BoundsWatch : public ::testing::Environment {
 public:
  void SetUp() override {
    thread_ = std::thread([this] { Run(); });
  }

  void TearDown() override {
    {
      const std::lock_guard<std::mutex> lock(mu_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
    std::map<std::string, Usage> most_of_role;
    for (const auto& [pid, usage] : seen_) {
      const std::string role = usage.name.substr(0, usage.name.find(' '));
      const std::int64_t given_kib = given_kib_[pid];
      const Bounds bounds = role != "serve" ? Bounds::OfAgent()
                            : given_kib > 0 ? Bounds::OfMaster(given_kib)
                                            : Bounds::OfMaster();
      for (const std::string& finding : Exceeded(usage, bounds)) ADD_FAILURE() << finding;
      Usage& most = most_of_role[role];
      TakeMost(usage, most);
      most.name = "the most of any " + role;
    }
    for (const auto& [role, usage] : most_of_role) std::cout << "bounds: " << ToText(usage) << "\n";
    if (seen_.empty() && AnyStarted()) ADD_FAILURE() << "bounds: no master and no agent was seen";
  }

 private:
  // Whether a test passed that did not say that it starts nobody.
  static bool AnyStarted() {
    const ::testing::UnitTest& all = *::testing::UnitTest::GetInstance();
    for (int i = 0; i < all.total_test_suite_count(); ++i) {
      const ::testing::TestSuite& suite = *all.GetTestSuite(i);
      for (int k = 0; k < suite.total_test_count(); ++k) {
        const ::testing::TestInfo& test = *suite.GetTestInfo(k);
        if (test.should_run() && test.result()->Passed() && !SaysNobody(*test.result()))
          return true;
      }
    }
    return false;
  }
  static bool SaysNobody(const ::testing::TestResult& result) {
    for (int i = 0; i < result.test_property_count(); ++i) {
      if (result.GetTestProperty(i).key() == std::string(Scene::kStartsNobody)) return true;
    }
    return false;
  }

  void Run() {
    std::unique_lock<std::mutex> lock(mu_);
    while (!changed_.wait_for(lock, std::chrono::milliseconds(250), [this] { return stopping_; })) {
      Look();
    }
  }

  void Look() {
    const std::map<int, int> parents = ReadParents();
    for (const auto& [pid, parent] : parents) {
      if (!IsBelow(pid, getpid(), parents)) continue;
      const std::string role = Role(pid);
      if (role.empty()) continue;
      TakeMost(ReadUsage(pid, role), seen_[pid]);
      given_kib_[pid] = std::max(given_kib_[pid], GivenKib(pid));
    }
  }

  std::mutex mu_;
  std::condition_variable changed_;
  bool stopping_ = false;
  // The thread's until it is joined.
  std::map<int, Usage> seen_;
  std::map<int, std::int64_t> given_kib_;
  std::thread thread_;
};

// Google Test owns it.
[[maybe_unused]] const auto* const kWatch =
    ::testing::AddGlobalTestEnvironment(new BoundsWatch);  // NOLINT

}  // namespace
}  // namespace stepwell::faults
