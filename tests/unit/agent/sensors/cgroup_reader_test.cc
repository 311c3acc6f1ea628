#include "client/agent/sensors/cgroup_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/agent/sensors/machine.h"

namespace stepwell::agent {
namespace {

using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

using Files = std::vector<std::pair<std::string, std::string>>;

constexpr char kMountV2[] =
    "30 20 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
// As docker shows it without a namespace of its own: the mount's root is the container's group.
constexpr char kMountsV1[] =
    "31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    "32 30 0:28 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n"
    "33 30 0:29 / /sys/fs/cgroup/cpuset rw shared:9 - cgroup cgroup rw,cpuset\n";
constexpr char kMountsV1Docker[] =
    "31 30 0:27 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
    "32 30 0:28 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";

struct Row {
  const char* name;
  std::string groups;
  std::string mounts;
  Files files;
  // "usage_us limit" and "used limit", "-" where there is none.
  std::string cpu;
  std::string memory;
};

std::string TextOf(const absl::StatusOr<CgroupCpu>& cpu) {
  if (!cpu.ok()) return absl::IsNotFound(cpu.status()) ? "-" : std::string(cpu.status().message());
  return std::to_string(cpu->usage_us) + " " + std::to_string(cpu->core_limit).substr(0, 4);
}

std::string TextOf(const absl::StatusOr<CgroupMemory>& memory) {
  if (!memory.ok()) {
    return absl::IsNotFound(memory.status()) ? "-" : std::string(memory.status().message());
  }
  return std::to_string(memory->used_bytes) + " " +
         (memory->limit_bytes ? std::to_string(*memory->limit_bytes) : "-");
}

TEST(CgroupReaderTest, FindsTheAgentsOwnGroupInBothVersionsAndMixtures) {
  const std::string v2 = "sys/fs/cgroup/";
  const Row rows[] = {
      {"v2, a pod's limits lie above its container",
       "0::/kubepods/pod1/abc\n",
       kMountV2,
       {{v2 + "kubepods/pod1/abc/cpu.stat", "usage_usec 5000000\nnr_periods 9\nnr_throttled 3\n"},
        {v2 + "kubepods/pod1/abc/cpu.max", "max 100000\n"},
        {v2 + "kubepods/pod1/cpu.max", "250000 100000\n"},
        {v2 + "kubepods/pod1/abc/memory.current", "1000000\n"},
        {v2 + "kubepods/pod1/abc/memory.stat", "anon 600000\ninactive_file 300000\n"},
        {v2 + "kubepods/pod1/abc/memory.max", "max\n"},
        {v2 + "kubepods/pod1/memory.max", "8000000\n"},
        {v2 + "kubepods/memory.max", "9000000\n"}},
       "5000000 2.50",
       "700000 8000000"},
      {"v2, a container that sees its own group as the top",
       "0::/\n",
       kMountV2,
       {{v2 + "cpu.stat", "usage_usec 77\n"},
        {v2 + "cpu.max", "50000 100000\n"},
        {v2 + "memory.current", "500\n"},
        {v2 + "memory.stat", "inactive_file 100\n"},
        {v2 + "memory.max", "4096\n"}},
       "77 0.50",
       "400 4096"},
      {"v2, the machine itself",
       "0::/\n",
       kMountV2,
       {{v2 + "cpu.stat", "usage_usec 77\n"}},
       "-",
       "-"},
      {"v2, a set of processors",
       "0::/slurm/step_0\n",
       kMountV2,
       {{v2 + "slurm/step_0/cpu.stat", "usage_usec 9\n"},
        {v2 + "slurm/step_0/cpu.max", "max 100000\n"},
        {v2 + "slurm/step_0/cpuset.cpus.effective", "0-1,4\n"}},
       "9 3.00",
       "-"},
      {"v1, a container that shares the host's tree",
       "4:memory:/docker/abc\n3:cpuset:/docker/abc\n2:cpu,cpuacct:/docker/abc\n",
       kMountsV1,
       {{"sys/fs/cgroup/cpu,cpuacct/docker/abc/cpuacct.usage", "3000000000\n"},
        {"sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "150000\n"},
        {"sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n"},
        {"sys/fs/cgroup/cpuset/docker/abc/cpuset.cpus", "0-7\n"},
        {"sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes", "1000\n"},
        {"sys/fs/cgroup/memory/docker/abc/memory.stat",
         "inactive_file 1\nhierarchical_memory_limit 2000\ntotal_inactive_file 400\n"}},
       "3000000 1.50",
       "600 2000"},
      {"v1, a container whose mounts show its part alone",
       "4:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n",
       kMountsV1Docker,
       {{"sys/fs/cgroup/cpu,cpuacct/cpuacct.usage", "5000\n"},
        {"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"},
        {"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"},
        {"sys/fs/cgroup/memory/memory.usage_in_bytes", "1000\n"},
        {"sys/fs/cgroup/memory/memory.stat",
         "hierarchical_memory_limit 9223372036854771712\ntotal_inactive_file 0\n"}},
       "5 8.00",
       "1000 -"},
      {"v1, the machine itself",
       "4:memory:/\n2:cpu,cpuacct:/\n",
       kMountsV1,
       {{"sys/fs/cgroup/cpu,cpuacct/cpuacct.usage", "5000\n"},
        {"sys/fs/cgroup/memory/memory.usage_in_bytes", "1000\n"},
        {"sys/fs/cgroup/memory/memory.stat",
         "hierarchical_memory_limit 9223372036854771712\ntotal_inactive_file 0\n"}},
       "-",
       "-"},
      {"hybrid: v2 is there without controllers",
       "4:memory:/job\n2:cpu,cpuacct:/\n0::/job\n",
       std::string("29 20 0:25 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n") + kMountsV1,
       {{"sys/fs/cgroup/unified/job/cpu.stat", "usage_usec 3\n"},
        {"sys/fs/cgroup/cpu,cpuacct/cpuacct.usage", "5000\n"},
        {"sys/fs/cgroup/memory/job/memory.usage_in_bytes", "10\n"},
        {"sys/fs/cgroup/memory/job/memory.stat",
         "hierarchical_memory_limit 20\ntotal_inactive_file 1\n"}},
       "-",
       "9 20"},
      {"none at all", "", "", {}, "-", "-"},
      {"v2, a damaged file",
       "0::/a\n",
       kMountV2,
       {{v2 + "a/cpu.stat", "user_usec 1\n"},
        {v2 + "a/memory.current", "lots\n"},
        {v2 + "a/memory.stat", "\n"}},
       "/sys/fs/cgroup/a/cpu.stat: no usage_usec",
       "/sys/fs/cgroup/a/memory.current: no number"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    Machine machine;
    machine.Write("sys/devices/system/cpu/online", "0-7\n");
    machine.Write("proc/self/cgroup", row.groups);
    machine.Write("proc/self/mountinfo", row.mounts);
    for (const auto& [path, text] : row.files) machine.Write(path, text);
    CgroupReader reader(machine.kernel());
    EXPECT_EQ(TextOf(reader.ReadCpu()), row.cpu);
    EXPECT_EQ(TextOf(reader.ReadMemory()), row.memory);
  }
}

TEST(CgroupReaderTest, CountsProcessors) {
  EXPECT_EQ(CountProcessors("0-3,8\n"), 5u);
  EXPECT_EQ(CountProcessors("0"), 1u);
  for (const char* bad : {"", "a", "3-1", "1-2-3", "0,", "-1", "0-99999999999"}) {
    EXPECT_EQ(CountProcessors(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace stepwell::agent
