// Containers as a machine's sampler tells them: by name, the agent's own or those of the processes
// that record.
#include "client/agent/sensors/container_sensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "tests/unit/agent/sensors/machine.h"

namespace stepwell::agent {
namespace {

using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr char kMountV2[] =
    "30 20 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr char kId[] = "3f2a9c01d7be3f2a9c01d7be3f2a9c01d7be3f2a9c01d7be3f2a9c01d7be0000";

TEST(ContainerNameTest, TellsContainersApartAndStaysTheSame) {
  struct Row {
    const char* name;
    std::string groups;
    std::string expected;
  };
  const Row rows[] = {
      {"docker, v2", absl::StrCat("0::/docker/", kId, "\n"), "3f2a9c01d7be"},
      {"containerd by systemd",
       absl::StrCat("0::/kubepods.slice/kubepods-pod1a_2b.slice/cri-containerd-", kId, ".scope\n"),
       "3f2a9c01d7be"},
      {"v1, the id in some controllers alone",
       absl::StrCat("9:name=systemd:/\n4:memory:/docker/", kId, "\n2:cpuacct:/\n0::/\n"),
       "3f2a9c01d7be"},
      {"a service in a container",
       absl::StrCat("0::/docker/", kId, "/system.slice/train.service\n"),
       "3f2a9c01d7be/system.slice/train.service"},
      {"a container in a container",
       absl::StrCat("0::/docker/", std::string(64, 'a'), "/docker/", kId), "3f2a9c01d7be"},
      {"a Slurm step", "0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n",
       "system.slice/slurmstepd.scope/job_7/step_0/user/task_0"},
      {"a short id is a name", "0::/lxc/abcdef01\n", "lxc/abcdef01"},
      {"a namespace of its own hides the path", "0::/\n", "node-1"},
      {"seen from beside", "0::/../other\n", "node-1"},
      {"no path at all", "0::\n", "node-1"},
      {"nothing is known", "", "node-1"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(ContainerName(row.groups, "node-1"), row.expected);
  }
  // Two long ones stay two.
  const std::string longer(200, 'x');
  const std::string one = ContainerName("0::/" + longer + "1\n", "node-1");
  EXPECT_EQ(one.size(), 64u);
  EXPECT_NE(one, ContainerName("0::/" + longer + "2\n", "node-1"));
}

class ContainerSensorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    machine_.Write("sys/devices/system/cpu/online", "0-7\n");
    machine_.Write("proc/self/mountinfo", kMountV2);
    machine_.Write("proc/sys/kernel/hostname", "node-1\n");
  }
  void WriteProcess(const std::string& process, const std::string& path) {
    machine_.Write("proc/" + process + "/cgroup", "0::" + path + "\n");
  }
  void WriteMemory(const std::string& path, int bytes) {
    machine_.Write("sys/fs/cgroup" + path + "/memory.current", absl::StrCat(bytes, "\n"));
    machine_.Write("sys/fs/cgroup" + path + "/memory.stat", "inactive_file 0\n");
  }
  void WriteCpu(const std::string& path, int usage_us) {
    machine_.Write("sys/fs/cgroup" + path + "/cpu.max", "200000 100000\n");
    machine_.Write("sys/fs/cgroup" + path + "/cpu.stat",
                   absl::StrCat("usage_usec ", usage_us, "\n"));
  }
  Machine machine_;
};

TEST_F(ContainerSensorTest, AgentRule16_UtilIsOfWhatTheContainerMayUse) {
  WriteProcess("self", "/");
  const std::string folder = "sys/fs/cgroup/";
  machine_.Write(folder + "cpu.max", "200000 100000\n");
  machine_.Write(folder + "cpu.stat", "usage_usec 1000000\nnr_periods 10\nnr_throttled 2\n");
  ContainerCpuSensor sensor(machine_.kernel());
  EXPECT_THAT(machine_.ReadValues(sensor),
              UnorderedElementsAre(Pair("cpu_container_limit{container=node-1}", 2)));
  machine_.Advance(absl::Milliseconds(500));
  // Half a second of processor time in half a second, of two processors.
  machine_.Write(folder + "cpu.stat", "usage_usec 1500000\nnr_periods 15\nnr_throttled 3\n");
  EXPECT_THAT(machine_.ReadValues(sensor),
              UnorderedElementsAre(Pair("cpu_container_limit{container=node-1}", 2),
                                   Pair("cpu_util_container{container=node-1}", 50),
                                   Pair("cpu_container_throttled{container=node-1}", 20)));
}

TEST_F(ContainerSensorTest, SaysNothingOutsideAContainer) {
  WriteProcess("self", "/");
  ContainerMemorySensor memory(machine_.kernel());
  ContainerCpuSensor cpu(machine_.kernel());
  EXPECT_THAT(machine_.Read(memory).samples(), IsEmpty());
  EXPECT_THAT(AbsencesOf(machine_.Read(memory)), IsEmpty());
  EXPECT_THAT(AbsencesOf(machine_.Read(cpu)), IsEmpty());
}

// A system agent's: not its own group, and of two ranks in one container one.
TEST_F(ContainerSensorTest, ReadsTheContainersOfTheProcessesThatRecord) {
  WriteProcess("self", "/system.slice/agent.service");
  WriteMemory("/system.slice/agent.service", 1);
  WriteProcess("11", "/pod/a");
  WriteProcess("12", "/pod/a");
  WriteProcess("21", "/pod/b");
  WriteProcess("31", "/../outside");
  WriteMemory("/pod/a", 1000);
  WriteMemory("/pod/b", 2000);
  const auto processes = std::make_shared<RecordingProcesses>();
  ContainerMemorySensor sensor(machine_.kernel(), {.processes = processes});
  EXPECT_THAT(machine_.ReadValues(sensor), IsEmpty());
  processes->Set({11, 12, 21, 31, 99});
  EXPECT_THAT(machine_.ReadValues(sensor),
              UnorderedElementsAre(Pair("memory_container_used{container=pod/a}", 1000),
                                   Pair("memory_container_used{container=pod/b}", 2000)));
  // The first of its container ends; the other goes on for it, however long.
  machine_.Remove("proc/11");
  processes->Set({12, 21});
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(machine_.ReadValues(sensor).count("memory_container_used{container=pod/a}"), 1u) << i;
  }
  processes->Set({21});
  EXPECT_THAT(machine_.ReadValues(sensor),
              UnorderedElementsAre(Pair("memory_container_used{container=pod/b}", 2000)));
  EXPECT_THAT(AbsencesOf(machine_.Read(sensor)), IsEmpty());
}

// A number is given again, and a container comes back: no rate runs over what lies between.
TEST_F(ContainerSensorTest, RatesOfAContainerThatComesBackBeginAnew) {
  WriteProcess("11", "/pod/a");
  WriteCpu("/pod/a", 0);
  const auto processes = std::make_shared<RecordingProcesses>();
  processes->Set({11});
  ContainerCpuSensor sensor(machine_.kernel(), {.processes = processes});
  machine_.ReadValues(sensor);
  machine_.Advance(absl::Seconds(1));
  EXPECT_EQ(machine_.ReadValues(sensor).count("cpu_util_container{container=pod/a}"), 1u);
  processes->Set({});
  machine_.ReadValues(sensor);
  processes->Set({11});
  machine_.Advance(absl::Seconds(1));
  EXPECT_EQ(machine_.ReadValues(sensor).count("cpu_util_container{container=pod/a}"), 0u);
}

TEST_F(ContainerSensorTest, AtMost64Containers) {
  std::vector<pid_t> pids;
  for (pid_t pid = 100; pid < 200; ++pid) {
    WriteProcess(absl::StrCat(pid), absl::StrCat("/pod/", pid));
    WriteMemory(absl::StrCat("/pod/", pid), pid);
    pids.push_back(pid);
  }
  const auto processes = std::make_shared<RecordingProcesses>();
  processes->Set(pids);
  ContainerMemorySensor sensor(machine_.kernel(), {.processes = processes});
  EXPECT_EQ(machine_.ReadValues(sensor).size(), 64u);
}

TEST_F(ContainerSensorTest, OfTwoAgentsInOneContainerOneMeasuresItForATrial) {
  WriteProcess("self", "/pod/a");
  WriteMemory("/pod/a", 1000);
  // As other runs of this test on the machine do not call theirs.
  const auto claims = [](const char* trial) {
    return std::make_shared<ContainerClaims>(absl::StrCat(trial, " of ", getpid()));
  };
  auto first = std::make_unique<ContainerMemorySensor>(machine_.kernel(),
                                                       ContainerOptions{.claims = claims("t")});
  ContainerMemorySensor second(machine_.kernel(), {.claims = claims("t")});
  ContainerMemorySensor of_another_trial(machine_.kernel(), {.claims = claims("u")});
  EXPECT_EQ(machine_.ReadValues(*first).size(), 1u);
  EXPECT_EQ(machine_.ReadValues(second).size(), 0u);
  // Who cannot have it says so: it may be no agent that has the name.
  const std::vector<Absence> absences = machine_.Read(second).absences();
  ASSERT_EQ(absences.size(), 1u);
  EXPECT_EQ(absences[0].metric_group, "memory");
  EXPECT_EQ(absences[0].kind, AbsenceKind::kUnsupported) << "told once, not counted";
  EXPECT_EQ(absences[0].reason, "container pod/a: another agent measures it");
  EXPECT_EQ(machine_.ReadValues(of_another_trial).size(), 1u);
  EXPECT_EQ(machine_.ReadValues(*first).size(), 1u) << "it is still its own";
  // When the one ends the other goes on, within a second.
  first = nullptr;
  machine_.Advance(ContainerClaims::kTryInterval);
  EXPECT_EQ(machine_.ReadValues(second).size(), 1u);
  EXPECT_THAT(machine_.Read(second).absences(), IsEmpty());
}

}  // namespace
}  // namespace stepwell::agent
