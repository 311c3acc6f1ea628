// What sensors say of loads of known size, beside the kernel's own counters read around them.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <memory>

#include "client/agent/sensors/container_sensor.h"
#include "client/agent/sensors/process_sensor.h"
#include "tests/unit/agent/sensors/truth/measurement.h"

namespace stepwell::agent {
namespace {

TEST(TruthTest, AProcessIsChargedWhatItBurned) {
  ProcessSensor sensor(getpid(), KernelText("/"));
  Measurement measurement(sensor);
  const double before = ProcessorSeconds();
  Burn(0.4);
  const Values values = measurement.End();
  const double burned = ProcessorSeconds() - before;
  const double told = values.at("cpu_util_process") / 100 * measurement.seconds();
  // The kernel counts in ticks of 10 ms, user and system apart.
  EXPECT_NEAR(told, burned, 0.03);
}

// A group below the memory (or cpu) controller of v1, gone with the test.
class Group {
 public:
  Group(const std::string& controller, const std::string& limit_file, const std::string& limit)
      : path_("/sys/fs/cgroup/" + controller + "/stepwell-truth-" + std::to_string(getpid())) {
    usable_ = mkdir(path_.c_str(), 0755) == 0;
    if (!usable_) return;
    WriteFile(path_ + "/" + limit_file, limit);
    std::string back;
    std::ifstream(path_ + "/" + limit_file) >> back;
    usable_ = back == limit;
  }
  ~Group() { rmdir(path_.c_str()); }
  bool usable() const { return usable_; }
  void Join() const { WriteFile(path_ + "/cgroup.procs", std::to_string(getpid())); }

 private:
  const std::string path_;
  bool usable_ = false;
};

TEST(TruthTest, AContainersMemoryIsWhatItTouchedAndItsLimitTheGroups) {
  const Group group("memory", "memory.limit_in_bytes", kContainerLimitBytes);
  if (!group.usable()) GTEST_SKIP() << "no group of the memory controller (v1) can be made here";
  const std::string outcome = InChild([&]() -> std::string {
    group.Join();
    ContainerMemorySensor sensor(KernelText("/"));
    return TouchInContainer(sensor);
  });
  EXPECT_EQ(outcome, "");
}

TEST(TruthTest, AContainersProcessorIsOfWhatItMayUse) {
  const Group group("cpu", "cpu.cfs_quota_us", "20000");
  const Group account("cpuacct", "notify_on_release", "0");
  if (!group.usable() || !account.usable()) {
    GTEST_SKIP() << "no group of the cpu and cpuacct controllers (v1) can be made here";
  }
  const std::string outcome = InChild([&]() -> std::string {
    group.Join();
    account.Join();
    ContainerCpuSensor sensor(KernelText("/"));
    Measurement measurement(sensor);
    const double before = ProcessorSeconds();
    Burn(0.2);
    const Values values = measurement.End();
    const double burned = ProcessorSeconds() - before;
    for (const char* name :
         {"cpu_container_limit", "cpu_util_container", "cpu_container_throttled"}) {
      if (std::isnan(OfContainer(values, name))) return std::string("no ") + name;
    }
    if (OfContainer(values, "cpu_container_limit") != 0.2) return "another limit";
    const double told =
        OfContainer(values, "cpu_util_container") / 100 * 0.2 * measurement.seconds();
    if (std::abs(told - burned) > 0.03) {
      return std::to_string(told) + " s told of " + std::to_string(burned);
    }
    // 200 ms at 20 ms of each 100: held back in nearly each period, unless others left it less.
    const bool was_starved = measurement.seconds() > 1.3;
    if (!was_starved && OfContainer(values, "cpu_container_throttled") < 50) return "not throttled";
    return "";
  });
  EXPECT_EQ(outcome, "");
}

}  // namespace
}  // namespace stepwell::agent
