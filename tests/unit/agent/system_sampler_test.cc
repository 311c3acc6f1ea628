#include "client/agent/system_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace stepwell::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// A machine made of files: proc and sys below a directory of its own.
class SystemSamplerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/stepwell-proc-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    root_ = pattern;
    fs::create_directories(root_ / "proc/net");
    fs::create_directories(root_ / "proc/self");
    for (const char* disk : {"sda", "nvme0n1", "loop0", "dm-0", "cciss!c0d0"}) {
      fs::create_directories(root_ / "sys/block" / disk);
    }
    WriteAll();
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    std::ofstream(root_ / path, std::ios::trunc) << text;
  }
  void WriteAll() {
    // user nice system idle iowait irq softirq steal guest guest_nice
    Write("proc/stat", "cpu  100 0 50 800 50 0 0 0 40 0\ncpu0 1 1 1 1\nbtime 5\n");
    Write("proc/meminfo", "MemTotal:       1000 kB\nMemFree: 10 kB\nMemAvailable:    900 kB\n");
    Write("proc/diskstats",
          "   8 0 sda 10 0 100 0 20 0 200 0 0 0 0 0 0 0 0\n"
          "   8 1 sda1 10 0 100 0 20 0 200 0 0 0 0 0 0 0 0\n"
          " 253 0 dm-0 10 0 100 0 20 0 200 0 0 0 0 0 0 0 0\n"
          "   7 0 loop0 10 0 100 0 20 0 200 0 0 0 0 0 0 0 0\n"
          " 104 0 cciss/c0d0 1 0 8 0 1 0 8 0 0 0 0 0 0 0 0\n");
    Write("proc/net/dev",
          "Inter-|   Receive\n face |bytes    packets\n"
          "    lo: 999 1 0 0 0 0 0 0 999 1 0 0 0 0 0 0\n"
          "  eth0:1000 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0\n"
          "  eth1: 10 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n");
    Write("proc/self/mountinfo",
          "22 1 0:21 / /proc rw - proc proc rw\n"
          "27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
          "28 27 254:0 /x /proc rw - ext4 /dev/vda rw\n"
          "29 27 7:1 / /sys rw - squashfs /dev/loop1 rw\n"
          "30 27 0:50 / /sys/fs rw - nfs4 server:/x rw\n");
  }
  static std::map<std::string, double> Values(const SystemTick& tick) {
    std::map<std::string, double> values;
    for (const SystemSample& sample : tick.samples) {
      if (sample.series.name != "disk_util") values[sample.series.name] = sample.value;
    }
    return values;
  }
  static std::vector<std::string> Misses(const SystemTick& tick) {
    std::vector<std::string> groups;
    for (const SensorMiss& miss : tick.misses) groups.push_back(miss.metric_group);
    return groups;
  }

  fs::path root_;
};

TEST_F(SystemSamplerTest, RatesRunOverTheTimeThatPassedAndNeverStartWithAZero) {
  SystemSampler sampler{ProcReader(root_)};
  const SystemTick first = sampler.Sample(absl::Seconds(100));
  EXPECT_THAT(Values(first), UnorderedElementsAre(Pair("memory_free", 900 * 1024)));

  Write("proc/stat", "cpu  130 0 60 840 70 0 0 0 60 0\n");
  Write("proc/diskstats",
        "   8 0 sda 15 0 300 0 25 0 600 0 0 0 0 0 0 0 0\n"
        "   8 1 sda1 15 0 300 0 25 0 600 0 0 0 0 0 0 0 0\n"
        " 104 0 cciss/c0d0 1 0 8 0 1 0 8 0 0 0 0 0 0 0 0\n");
  Write("proc/net/dev",
        "    lo: 99999 1 0 0 0 0 0 0 99999 1 0 0 0 0 0 0\n"
        "  eth0:3000 1 0 0 0 0 0 0 1500 1 0 0 0 0 0 0\n"
        "  eth1: 10 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n");
  const SystemTick second = sampler.Sample(absl::Seconds(100) + absl::Milliseconds(400));
  // busy 40 of 100 ticks; 10 operations, 200 and 400 sectors, 2000 and 1000 bytes in 0.4 s.
  EXPECT_THAT(
      Values(second),
      UnorderedElementsAre(Pair("memory_free", 900 * 1024), Pair("cpu_util_simple", 40),
                           Pair("disk_iops", 25), Pair("disk_throughput_read", 200 * 512 / 0.4),
                           Pair("disk_throughput_write", 400 * 512 / 0.4),
                           Pair("net_throughput_recv", 5000), Pair("net_throughput_sent", 2500)));
  EXPECT_TRUE(second.misses.empty());
}

TEST_F(SystemSamplerTest, NamesGroupsAndUnitsAreThoseOfTheContract) {
  SystemSampler sampler{ProcReader(root_)};
  sampler.Sample(absl::Seconds(1));
  Write("proc/stat", "cpu  130 0 60 840 70 0 0 0 60 0\n");
  std::vector<std::string> names;
  for (const SystemSample& sample : sampler.Sample(absl::Seconds(2)).samples) {
    names.push_back(sample.series.metric_group + "/" + sample.series.name + " " +
                    sample.series.unit);
    EXPECT_EQ(sample.series.labels.count("mount"), sample.series.name == "disk_util" ? 1u : 0u);
    EXPECT_EQ(sample.series.kind, pb::SERIES_KIND_GAUGE);
  }
  EXPECT_THAT(names,
              UnorderedElementsAre("cpu/cpu_util_simple percent", "memory/memory_free bytes",
                                   "disk/disk_iops 1/s", "disk/disk_throughput_read bytes/s",
                                   "disk/disk_throughput_write bytes/s", "disk/disk_util percent",
                                   "network/net_throughput_recv bytes/s",
                                   "network/net_throughput_sent bytes/s"));
}

TEST_F(SystemSamplerTest, ListsEachLocalDiskOnceByItsShortestMount) {
  const auto mounts = ProcReader(root_).ReadMounts();
  ASSERT_TRUE(mounts.ok()) << mounts.status();
  ASSERT_EQ(mounts->size(), 1u);
  EXPECT_EQ(mounts->front().mount, "/");
  EXPECT_GT(mounts->front().used_percent, 0);
  EXPECT_LE(mounts->front().used_percent, 100);
}

// Series that differ in nothing would be one series with two values per tick.
TEST_F(SystemSamplerTest, AMountPointThatIsMountedOverHasOneSeries) {
  const std::string root = "27 1 254:0 / / rw - ext4 /dev/vda rw\n";
  const struct {
    const char* name;
    std::string lines;
    std::vector<std::string> mounts;
  } rows[] = {
      {"two disks on one point",
       "31 27 8:1 / /sys rw - ext4 /dev/sda1 rw\n32 31 8:17 / /sys rw - ext4 /dev/sdb1 rw\n",
       {"/", "/sys"}},
      {"a bind mount of a directory over a disk",
       "31 27 8:1 / /sys rw - ext4 /dev/sda1 rw\n32 31 254:0 /x /sys rw - ext4 /dev/vda rw\n",
       {"/"}},
      {"memory over a disk",
       "31 27 8:1 / /sys rw - ext4 /dev/sda1 rw\n32 31 0:77 / /sys rw - tmpfs tmpfs rw\n",
       {"/"}},
      {"a disk over memory",
       "31 27 0:77 / /sys rw - tmpfs tmpfs rw\n32 31 8:1 / /sys rw - ext4 /dev/sda1 rw\n",
       {"/", "/sys"}},
      {"a disk under one point and on another",
       "31 27 8:1 / /sys rw - ext4 /dev/sda1 rw\n32 31 8:17 / /sys rw - ext4 /dev/sdb1 rw\n"
       "33 27 8:1 / /proc rw - ext4 /dev/sda1 rw\n",
       {"/", "/proc", "/sys"}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    Write("proc/self/mountinfo", root + row.lines);
    SystemSampler sampler{ProcReader(root_)};
    std::vector<std::string> mounts;
    for (const SystemSample& sample : sampler.Sample(absl::Seconds(1)).samples) {
      if (sample.series.name == "disk_util") mounts.push_back(sample.series.labels.at("mount"));
    }
    EXPECT_EQ(mounts, row.mounts);
  }
}

struct BadRow {
  const char* name;
  const char* path;
  const char* text;  // null = the file is gone
  std::vector<std::string> missing_groups;
};

TEST_F(SystemSamplerTest, AFailingSensorHidesNothingElseAndComesBack) {
  const BadRow rows[] = {
      {"no stat", "proc/stat", nullptr, {"cpu"}},
      {"short stat", "proc/stat", "cpu  1 2 3\n", {"cpu"}},
      {"stat of words", "proc/stat", "cpu  a b c d e f g h\n", {"cpu"}},
      {"stat without cpu", "proc/stat", "btime 3\n", {"cpu"}},
      {"no meminfo", "proc/meminfo", nullptr, {"memory"}},
      {"no MemAvailable", "proc/meminfo", "MemFree: 4 kB\n", {"memory"}},
      {"empty MemAvailable", "proc/meminfo", "MemAvailable:\n", {"memory"}},
      {"no diskstats", "proc/diskstats", nullptr, {"disk"}},
      {"short diskstats", "proc/diskstats", "8 0 sda 1 2\n", {"disk"}},
      {"negative diskstats", "proc/diskstats", "8 0 sda -1 0 1 0 1 0 1 0\n", {"disk"}},
      {"no net", "proc/net/dev", nullptr, {"network"}},
      {"short net", "proc/net/dev", "  eth0: 1 2 3\n", {"network"}},
      {"no mounts", "proc/self/mountinfo", nullptr, {"disk"}},
      {"short mounts", "proc/self/mountinfo", "22 1 0:21 /\n", {"disk"}},
      {"mounts without type", "proc/self/mountinfo", "1 2 0:3 / / rw a b c d -\n", {"disk"}},
  };
  for (const BadRow& row : rows) {
    SCOPED_TRACE(row.name);
    WriteAll();
    SystemSampler sampler{ProcReader(root_)};
    sampler.Sample(absl::Seconds(1));
    if (row.text == nullptr) {
      fs::remove(root_ / row.path);
    } else {
      Write(row.path, row.text);
    }
    const SystemTick bad = sampler.Sample(absl::Seconds(2));
    EXPECT_EQ(Misses(bad), row.missing_groups);
    EXPECT_GE(bad.samples.size(), 3u);
    WriteAll();
    // The cpu's counters stand still in these files: its rate alone stays away.
    const SystemTick good = sampler.Sample(absl::Seconds(3));
    EXPECT_TRUE(good.misses.empty());
    EXPECT_EQ(good.samples.size(), 7u);
  }
}

TEST_F(SystemSamplerTest, CountersThatWentBackGiveNoRate) {
  SystemSampler sampler{ProcReader(root_)};
  sampler.Sample(absl::Seconds(1));
  Write("proc/stat", "cpu  1 0 1 1 1 0 0 0 0 0\n");
  Write("proc/diskstats", "   8 0 sda 1 0 1 0 2 0 2 0 0 0 0 0 0 0 0\n");
  Write("proc/net/dev", "  eth0:1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n");
  EXPECT_THAT(Values(sampler.Sample(absl::Seconds(2))),
              UnorderedElementsAre(Pair("memory_free", 900 * 1024)));
}

TEST_F(SystemSamplerTest, ReadsThisMachine) {
  SystemSampler sampler{ProcReader("/")};
  sampler.Sample(absl::Seconds(1));
  const SystemTick tick = sampler.Sample(absl::Seconds(2));
  for (const SensorMiss& miss : tick.misses) ADD_FAILURE() << miss.metric_group << miss.why;
  EXPECT_GT(Values(tick).at("memory_free"), 0);
}

}  // namespace
}  // namespace stepwell::agent
