// Holds each master, agent and training of each fault test to the checker's bounds, whoever started it: looks
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

constexpr char kTrainer[] = "trainer";
constexpr std::int64_t kSeenAfterMs = 2000;
// Of its --disturb (programs/disturbance.h).
constexpr std::int64_t kUsesUpDescriptors = 8;

// "serve", "agent", kTrainer, or "" where it is none of ours. `words`: a command line as the kernel tells it.
std::string Role(const std::string& words) {
  const std::size_t program_end = words.find('\0');
  if (program_end == std::string::npos) return "";
  const std::string program = words.substr(0, program_end);
  if (absl::EndsWith(program, "/fault_trainer")) return kTrainer;
  if (!absl::EndsWith(program, "/stepwell")) return "";
  const std::string word =
      words.substr(program_end + 1, words.find('\0', program_end + 1) - program_end - 1);
  return word == "serve" || word == "agent" ? word : "";
}

// What stands behind `option`, up to the end of its word; "" = it is not given.
std::string Given(const std::string& words, const std::string& option) {
  const std::size_t at = words.find(option);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + option.size();
  return words.substr(begin, words.find('\0', begin) - begin);
}

Bounds BoundsOf(const std::string& role, const std::string& words) {
  std::int64_t number = 0;
  if (role == kTrainer) {
    Bounds bounds = Bounds::OfTrainer();
    // One that uses up all descriptors, as a test wants it.
    const bool is_number = absl::SimpleAtoi(Given(words, std::string("--disturb\0", 10)), &number);
    if (is_number && (number & kUsesUpDescriptors) != 0) bounds.descriptors = INT64_MAX;
    return bounds;
  }
  if (role == "agent") return Bounds::OfAgent();
  const std::string given = Given(words, "--memory-bytes=");
  const bool is_given = absl::SimpleAtoi(given.substr(0, given.find("MiB")), &number);
  return is_given ? Bounds::OfMaster(number << 10) : Bounds::OfMaster();
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
    for (const auto& [pid, seen] : seen_) {
      for (const std::string& finding : Exceeded(seen.usage, seen.bounds)) ADD_FAILURE() << finding;
      Usage& most = most_of_role[seen.role];
      TakeMost(seen.usage, most);
      most.name = "the most of any " + seen.role;
    }
    for (const auto& [role, usage] : most_of_role) std::cout << "bounds: " << ToText(usage) << "\n";
    const bool saw_trainer = most_of_role.erase(kTrainer) != 0;
    if (!saw_trainer && Any(&Trains)) ADD_FAILURE() << "bounds: no training was seen";
    if (most_of_role.empty() && Any(&StartsSomebody)) {
      ADD_FAILURE() << "bounds: no master and no agent was seen";
    }
  }

 private:
  struct Seen {
    std::string role;
    Usage usage;
    Bounds bounds;
  };

  // Whether a test passed of which that holds.
  static bool Any(bool (*holds)(const ::testing::TestResult&)) {
    const ::testing::UnitTest& all = *::testing::UnitTest::GetInstance();
    for (int i = 0; i < all.total_test_suite_count(); ++i) {
      const ::testing::TestSuite& suite = *all.GetTestSuite(i);
      for (int k = 0; k < suite.total_test_count(); ++k) {
        const ::testing::TestInfo& test = *suite.GetTestInfo(k);
        if (test.should_run() && test.result()->Passed() && holds(*test.result())) return true;
      }
    }
    return false;
  }
  // One that ends soon may do so between two looks.
  static bool Trains(const ::testing::TestResult& result) {
    return Says(Scene::kStartsTrainer, result) && result.elapsed_time() > kSeenAfterMs;
  }
  static bool StartsSomebody(const ::testing::TestResult& result) {
    return !Says(Scene::kStartsNobody, result);
  }
  static bool Says(const std::string& what, const ::testing::TestResult& result) {
    for (int i = 0; i < result.test_property_count(); ++i) {
      if (result.GetTestProperty(i).key() == what) return true;
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
      const std::string words = Text(fs::path("/proc") / std::to_string(pid) / "cmdline");
      const std::string role = Role(words);
      if (role.empty()) continue;
      auto [seen, is_new] = seen_.try_emplace(pid);
      if (is_new) seen->second = {role, {}, BoundsOf(role, words)};
      TakeMost(ReadUsage(pid, role), seen->second.usage);
    }
  }

  std::mutex mu_;
  std::condition_variable changed_;
  bool stopping_ = false;
  // The thread's until it is joined.
  std::map<int, Seen> seen_;
  std::thread thread_;
};

// Google Test owns it.
[[maybe_unused]] const auto* const kWatch =
    ::testing::AddGlobalTestEnvironment(new BoundsWatch);  // NOLINT

}  // namespace
}  // namespace stepwell::faults
