// A group of cgroup v2, for real: made below the machine's own tree, joined by a child, limited and
// loaded by known amounts. Where v1 holds a controller, as on a hybrid machine, its part is skipped.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "client/agent/sensors/container_sensor.h"
#include "tests/unit/agent/sensors/truth/measurement.h"

namespace stepwell::agent {
namespace {

// Where cgroup v2 is mounted; "" = nowhere.
std::string MountOfV2() {
  std::ifstream mounts("/proc/self/mountinfo");
  std::string line;
  while (std::getline(mounts, line)) {
    if (line.find(" - cgroup2 ") == std::string::npos) continue;
    std::istringstream words(line);
    std::string word;
    for (int i = 0; i < 5; ++i) words >> word;
    return word;
  }
  return "";
}

// A group of its own, gone with the test, and a root below which it is the only one that a process
// is in: what the same group looks like where no v1 is mounted.
class GroupV2 {
 public:
  explicit GroupV2(const std::string& controller) : mount_(MountOfV2()) {
    if (mount_.empty()) {
      why_not_ = "cgroup v2 is mounted nowhere here";
    } else if (!Give(controller)) {
      why_not_ = "cgroup v2 has no " + controller +
                 " controller to give here: v1 holds it, or this container may not";
    } else if (mkdir((mount_ + name_).c_str(), 0755) != 0) {
      why_not_ = "no group of cgroup v2 can be made here: " + std::string(std::strerror(errno));
    }
    if (!why_not_.empty()) return;
    machine_.Write("proc/self/cgroup", "0::" + name_ + "\n");
    machine_.Write("proc/self/mountinfo", "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    std::filesystem::create_directories(machine_.root() / "sys/fs");
    std::filesystem::create_directory_symlink(mount_, machine_.root() / "sys/fs/cgroup");
    std::filesystem::create_directory_symlink("/sys/devices", machine_.root() / "sys/devices");
  }
  ~GroupV2() {
    if (why_not_.empty()) rmdir((mount_ + name_).c_str());
  }
  // "" = it is there.
  const std::string& why_not() const { return why_not_; }
  void Set(const std::string& file, const std::string& text) const {
    WriteFile(mount_ + name_ + "/" + file, text);
  }
  void Join() const { Set("cgroup.procs", std::to_string(getpid())); }
  KernelText kernel() const { return machine_.kernel(); }

 private:
  // To the groups below the top.
  bool Give(const std::string& controller) const {
    if (controller.empty()) return true;
    WriteFile(mount_ + "/cgroup.subtree_control", "+" + controller);
    std::ifstream given(mount_ + "/cgroup.subtree_control");
    for (std::string name; given >> name;) {
      if (name == controller) return true;
    }
    return false;
  }

  Machine machine_;
  const std::string mount_;
  const std::string name_ = "/stepwell-truth-" + std::to_string(getpid());
  std::string why_not_;
};

// Processors that the machine has, as a limit of a group.
double ProcessorsOnline() { return static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN)); }

// cpu.stat is kept without the controller as well.
TEST(CgroupV2TruthTest, AContainerIsChargedWhatItBurned) {
  const GroupV2 group("");
  if (!group.why_not().empty()) GTEST_SKIP() << group.why_not();
  const std::string outcome = InChild([&]() -> std::string {
    group.Join();
    ContainerCpuSensor sensor(group.kernel());
    Measurement measurement(sensor);
    const double before = ProcessorSeconds();
    Burn(0.3);
    const Values values = measurement.End();
    const double burned = ProcessorSeconds() - before;
    if (std::isnan(OfContainer(values, "cpu_util_container"))) return "no cpu_util_container";
    const double limit = OfContainer(values, "cpu_container_limit");
    if (limit != ProcessorsOnline()) return "a limit of " + std::to_string(limit);
    // Of the group's account, which nobody else adds to.
    const double told =
        OfContainer(values, "cpu_util_container") / 100 * limit * measurement.seconds();
    if (std::abs(told - burned) < 0.01) return "";
    return std::to_string(told) + " s told of " + std::to_string(burned);
  });
  EXPECT_EQ(outcome, "");
}

TEST(CgroupV2TruthTest, AContainersProcessorIsOfItsQuota) {
  const GroupV2 group("cpu");
  if (!group.why_not().empty()) GTEST_SKIP() << group.why_not();
  group.Set("cpu.max", "20000 100000");
  const std::string outcome = InChild([&]() -> std::string {
    group.Join();
    ContainerCpuSensor sensor(group.kernel());
    Measurement measurement(sensor);
    const double before = ProcessorSeconds();
    Burn(0.2);
    const Values values = measurement.End();
    const double burned = ProcessorSeconds() - before;
    if (OfContainer(values, "cpu_container_limit") != 0.2) return "another limit";
    const double told =
        OfContainer(values, "cpu_util_container") / 100 * 0.2 * measurement.seconds();
    if (std::abs(told - burned) > 0.01) {
      return std::to_string(told) + " s told of " + std::to_string(burned);
    }
    const bool was_starved = measurement.seconds() > 1.3;
    if (!was_starved && OfContainer(values, "cpu_container_throttled") < 50) return "not throttled";
    return "";
  });
  EXPECT_EQ(outcome, "");
}

TEST(CgroupV2TruthTest, AContainersMemoryIsWhatItTouchedAndItsLimitTheGroups) {
  const GroupV2 group("memory");
  if (!group.why_not().empty()) GTEST_SKIP() << group.why_not();
  group.Set("memory.max", kContainerLimitBytes);
  const std::string outcome = InChild([&]() -> std::string {
    group.Join();
    ContainerMemorySensor sensor(group.kernel());
    return TouchInContainer(sensor);
  });
  EXPECT_EQ(outcome, "");
}

}  // namespace
}  // namespace stepwell::agent
