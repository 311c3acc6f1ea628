#include "client/agent/sensors/disk_sensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/unit/agent/sensors/machine.h"

namespace stepwell::agent {
namespace {

using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

struct Counts {
  std::string name;
  int reads = 0;
  int read_sectors = 0;
  int writes = 0;
  int written_sectors = 0;
};

std::string Diskstats(const std::vector<Counts>& lines) {
  std::string text;
  for (const Counts& line : lines) {
    absl::StrAppend(&text, " 259 0 ", line.name, " ", line.reads, " 0 ", line.read_sectors, " 0 ",
                    line.writes, " 0 ", line.written_sectors, " 0 0 0 0 0 0 0 0\n");
  }
  return text;
}

class DiskSensorTest : public ::testing::Test {
 protected:
  // Below /sys/block.
  void Make(const std::string& folder) const {
    std::filesystem::create_directories(machine_.root() / "sys/block" / folder);
  }
  void Count(const std::vector<Counts>& lines) const {
    machine_.Write("proc/diskstats", Diskstats(lines));
  }
  Machine machine_;
};

TEST_F(DiskSensorTest, AgentRule16_WholeDisksCountOnceOverTheTimeThatPassed) {
  Make("sda/device");
  Make("cciss!c0d0/device");
  Make("dm-0/dm");
  Count({{"sda", 10, 100, 20, 200},
         {"sda1", 10, 100, 20, 200},
         {"dm-0", 10, 100, 20, 200},
         {"cciss/c0d0", 1, 8, 1, 8}});
  DiskSensor sensor(machine_.kernel());
  EXPECT_THAT(machine_.ReadValues(sensor), IsEmpty());
  machine_.Advance(absl::Milliseconds(400));
  Count({{"sda", 15, 300, 25, 600},
         {"sda1", 15, 300, 25, 600},
         {"dm-0", 15, 300, 25, 600},
         {"cciss/c0d0", 1, 8, 1, 8}});
  EXPECT_THAT(
      machine_.ReadValues(sensor),
      UnorderedElementsAre(Pair("disk_iops", 25), Pair("disk_throughput_read", 200 * 512 / 0.4),
                           Pair("disk_throughput_write", 400 * 512 / 0.4)));
}

TEST_F(DiskSensorTest, ADiskThatIsUnpluggedTakesOnlyItsOwnCountsWithIt) {
  for (const char* disk : {"sda", "nvme0n1", "cciss!c0d0"}) Make(absl::StrCat(disk, "/device"));
  Count({{"sda", 10, 100, 20, 200}, {"cciss/c0d0", 1, 8, 1, 8}});
  DiskSensor sensor(machine_.kernel());
  machine_.Read(sensor);
  machine_.Advance(absl::Seconds(1));
  // sda, 30 operations so far, is gone; the other did 4. A new one has done 1000 before it was seen.
  Count({{"cciss/c0d0", 3, 16, 3, 24}, {"nvme0n1", 1000, 8000, 0, 0}});
  EXPECT_THAT(machine_.ReadValues(sensor),
              UnorderedElementsAre(Pair("disk_iops", 4), Pair("disk_throughput_read", 8 * 512),
                                   Pair("disk_throughput_write", 16 * 512)));
}

TEST(DiskEntryTest, WhatIsMadeOfDisksOrOfMemoryCountsNothing) {
  struct Row {
    const char* name;
    std::vector<std::string> folders;
    const char* entry;
    bool counts;
  };
  const Row rows[] = {
      {"a SATA disk", {"sda/device"}, "sda", true},
      {"a virtual machine's disk", {"vda/device"}, "vda", true},
      {"a card", {"mmcblk0/device"}, "mmcblk0", true},
      {"a controller's disk, whose name has a slash", {"cciss!c0d0/device"}, "cciss/c0d0", true},
      {"a disk of Ceph's", {"rbd0/device"}, "rbd0", true},
      {"another machine's disk", {"nbd0"}, "nbd0", true},
      {"a partition of it", {"nbd0"}, "nbd0p1", false},
      {"another machine's disk, by RDMA", {"rnbd0"}, "rnbd0", true},
      {"another machine's disk, by Ethernet", {"etherd!e1.0"}, "etherd/e1.0", true},
      {"a partition", {"sda/device", "sda/sda1"}, "sda1", false},
      {"bcache", {"bcache0/bcache"}, "bcache0", false},
      {"DRBD", {"drbd0"}, "drbd0", false},
      {"a volume of ZFS", {"zd0"}, "zd0", false},
      {"RAID", {"md0/md"}, "md0", false},
      {"device-mapper", {"dm-0/dm"}, "dm-0", false},
      {"a loop device", {"loop0"}, "loop0", false},
      {"memory", {"ram0"}, "ram0", false},
      {"compressed memory", {"zram0"}, "zram0", false},
      {"an optical drive", {"sr0/device"}, "sr0", false},
      {"a floppy drive", {"fd0/device"}, "fd0", false},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    Machine machine;
    for (const std::string& folder : row.folders) {
      std::filesystem::create_directories(machine.root() / "sys/block" / folder);
    }
    DiskSensor sensor(machine.kernel());
    machine.Write("proc/diskstats", Diskstats({{row.entry, 1, 8, 1, 8}}));
    machine.Read(sensor);
    machine.Advance(absl::Seconds(1));
    machine.Write("proc/diskstats", Diskstats({{row.entry, 4, 16, 2, 24}}));
    const Values values = machine.ReadValues(sensor);
    EXPECT_EQ(values.count("disk_iops"), row.counts ? 1u : 0u);
    if (!row.counts || values.empty()) continue;
    EXPECT_EQ(values.at("disk_iops"), 4);
    EXPECT_EQ(values.at("disk_throughput_write"), 16 * 512);
  }
}

TEST(MultipathDiskTest, AgentRule16_AnOperationOfAMultipathDiskCountsOnce) {
  struct Row {
    const char* name;
    // What the disk nvme0n1 and its paths say at two moments.
    std::vector<Counts> before;
    std::vector<Counts> after;
    double operations;
    double read_sectors;
    double written_sectors;
  };
  const Row rows[] = {
      {"disk and path count",
       {{"nvme0c0n1", 10, 80, 10, 80}, {"nvme0n1", 10, 80, 10, 80}},
       {{"nvme0c0n1", 13, 104, 11, 96}, {"nvme0n1", 13, 104, 11, 96}},
       4,
       24,
       16},
      {"two paths, of which the disk is the sum",
       {{"nvme0c0n1", 10, 80, 10, 80},
        {"nvme0n1", 110, 880, 10, 80},
        {"nvme0c1n1", 100, 800, 0, 0}},
       {{"nvme0c0n1", 12, 96, 10, 80},
        {"nvme0n1", 117, 936, 10, 80},
        {"nvme0c1n1", 105, 840, 0, 0}},
       7,
       56,
       0},
      {"an older kernel: paths alone, before and behind the disk's line",
       {{"nvme0c0n1", 10, 80, 10, 80}, {"nvme0n1"}, {"nvme0c1n1", 100, 800, 0, 0}},
       {{"nvme0c0n1", 12, 96, 10, 80}, {"nvme0n1"}, {"nvme0c1n1", 105, 840, 1, 8}},
       8,
       56,
       8},
      {"the disk's first operations",
       {{"nvme0n1"}, {"nvme0c0n1"}},
       {{"nvme0n1", 3, 24, 0, 0}, {"nvme0c0n1", 3, 24, 0, 0}},
       3,
       24,
       0},
      {"a disk that stands still after it has counted",
       {{"nvme0n1", 5, 40, 0, 0}, {"nvme0c0n1", 5, 40, 0, 0}},
       {{"nvme0n1", 5, 40, 0, 0}, {"nvme0c0n1", 9, 72, 0, 0}},
       0,
       0,
       0},
      {"a path without its disk",
       {{"nvme0c0n1", 5, 40, 0, 0}},
       {{"nvme0c0n1", 9, 72, 0, 0}},
       4,
       32,
       0},
      {"paths of another disk",
       {{"nvme0n1", 5, 40, 0, 0},
        {"nvme0n2"},
        {"nvme0c0n2", 1, 8, 0, 0},
        {"nvme1c0n1", 1, 8, 0, 0}},
       {{"nvme0n1", 6, 48, 0, 0},
        {"nvme0n2"},
        {"nvme0c0n2", 3, 24, 0, 0},
        {"nvme1c0n1", 5, 40, 0, 0}},
       7,
       56,
       0},
      {"many digits",
       {{"nvme12n34", 1, 8, 0, 0}, {"nvme12c345n34", 1, 8, 0, 0}},
       {{"nvme12n34", 2, 16, 0, 0}, {"nvme12c345n34", 2, 16, 0, 0}},
       1,
       8,
       0},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    Machine machine;
    for (const char* disk : {"nvme0n1", "nvme0n2", "nvme12n34", "nvme0c0n1", "nvme0c1n1"}) {
      std::filesystem::create_directories(machine.root() / "sys/block" / disk / "device");
    }
    DiskSensor sensor(machine.kernel());
    machine.Write("proc/diskstats", Diskstats(row.before));
    EXPECT_THAT(machine.ReadValues(sensor), IsEmpty());
    machine.Advance(absl::Seconds(1));
    machine.Write("proc/diskstats", Diskstats(row.after));
    EXPECT_THAT(machine.ReadValues(sensor),
                UnorderedElementsAre(Pair("disk_iops", row.operations),
                                     Pair("disk_throughput_read", row.read_sectors * 512),
                                     Pair("disk_throughput_write", row.written_sectors * 512)));
  }
}

}  // namespace
}  // namespace stepwell::agent
