// The kernel's killer takes the master, the agent and a trial, each in a memory cgroup that somebody
// else fills up.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"

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

// A cgroup of v1 or v2 with a small bound of memory; whoever is in it when it is full may be killed.
class SmallMemory {
 public:
  explicit SmallMemory(const std::string& name) {
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
      trouble_ = Write(absl::StrCat(path_, "/", bound), absl::StrCat(32 << 20)) &&
                         NumberOf(events_, "oom_kill") >= 0
                     ? ""
                     : "the memory cgroup takes no bound";
      if (trouble_.empty()) return;
      rmdir(path_.c_str());
    }
  }
  // Those who were in it have ended by now; the kernel may need a moment.
  ~SmallMemory() {
    hog_.Kill();
    Eventually([&] { return rmdir(path_.c_str()) == 0 || errno != EBUSY; }, absl::Seconds(5));
  }
  // Empty = it is there.
  const std::string& trouble() const { return trouble_; }
  std::int64_t kill_count() const { return NumberOf(events_, "oom_kill"); }

  // Fills it up with `victim` in it, whom the killer is to prefer, until it was killed. Empty = it was,
  // else why not.
  std::string Kill(pid_t victim, const std::function<bool()>& is_gone, const std::string& log) {
    const std::int64_t before = kill_count();
    if (!Write(absl::StrCat("/proc/", victim, "/oom_score_adj"), "1000")) return "no preference";
    if (!Write(path_ + "/cgroup.procs", absl::StrCat(victim))) return "not moved";
    hog_.Start({testing::BuiltProgram("memory_hog"), "--cgroup", path_ + "/cgroup.procs"}, {}, log);
    const bool killed = Eventually(is_gone, absl::Seconds(30));
    const std::string hog = hog_.Wait(absl::ZeroDuration());
    hog_.Kill();
    if (killed && kill_count() > before) return "";
    return absl::StrCat("hog: ", hog, ", kills: ", kill_count() - before);
  }

 private:
  std::string path_;
  std::string events_;
  std::string trouble_;
  ChildProcess hog_;
};

TEST(OutOfMemoryTest, AMasterAnAgentAndATrialThatAreKilledForItLoseAndDoubleNothing) {
  Scene scene("out of memory");
  SmallMemory memory("oom");
  if (!memory.trouble().empty()) GTEST_SKIP() << memory.trouble();
  MasterProcess master({.scratch = scene.path("")});
  MasterClient client(master.grpc_address());
  const auto committed = [&] {
    const auto status = client.Status();
    return status ? status->chunks_committed() : 0;
  };
  const auto kill_child = [&](ChildProcess& child) {
    return memory.Kill(
        child.pid(), [&] { return !child.running(); }, scene.path("hog.log"));
  };
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
  scene.StartAgent(master.grpc_address());
  scene.StartTrainer(0, {{"--world-size", "2"}});
  ChildProcess& second = scene.StartTrainer(1, {{"--world-size", "2"}, {"--scopes", "0"}});
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(scene.Await("10 chunks", absl::Seconds(60), [&] { return committed() >= 10; }))
        << scene.Logs() << master.LogTail();
    ASSERT_EQ(memory.Kill(
                  master.pid(), [&] { return !master.running(); }, scene.path("hog.log")),
              "");
    EXPECT_EQ(master.Ending(), "killed by signal 9");
    scene.Say(absl::StrCat("the master was killed, ", memory.kill_count(), " kills so far"));
    ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
    ASSERT_EQ(kill_child(scene.agent()), "");
    EXPECT_EQ(scene.agent().Wait(absl::ZeroDuration()), "killed by signal 9");
    scene.Say("the agent was killed");
    scene.StartAgent(master.grpc_address());
  }
  ASSERT_EQ(kill_child(second), "");
  EXPECT_EQ(second.Wait(absl::ZeroDuration()), "killed by signal 9");
  scene.Say("a trial was killed");
  scene.StopProducers(absl::Seconds(60));
  // What the trial that was killed had recorded arrives when its agent has seen its end.
  const std::size_t recorded = scene.ReadLedgers().samples.size();
  scene.Say(absl::StrCat(recorded, " samples recorded"));
  EXPECT_TRUE(scene.Await("the trial is failed", absl::Seconds(60), [&] {
    const auto trial = client.Trial("faults");
    return trial && trial->trial().state() == v1::TRIAL_STATE_FAILED;
  })) << scene.Logs();
  const Verdict verdict = scene.ExpectExact(master, Demand::kAcked);
  EXPECT_EQ(verdict.declared_count, 0U);
  EXPECT_EQ(master.Stop(), "exit 0") << master.LogTail();
}

}  // namespace
}  // namespace stepwell::faults
