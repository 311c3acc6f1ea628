// What DiskSensor says of a file written and read past the cache, between what /proc/diskstats says
// just inside and just outside of it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "client/agent/sensors/disk_sensor.h"
#include "client/agent/sensors/process_sensor.h"
#include "tests/unit/agent/sensors/truth/measurement.h"

namespace stepwell::agent {
namespace {

constexpr std::size_t kFileBytes = 32 << 20;
constexpr std::size_t kBlockBytes = 1 << 20;

struct Moved {
  double operations = 0;
  double read_bytes = 0;
  double written_bytes = 0;
};

// By all disks that are devices of the machine: only those have a driver's device in sysfs.
Moved ReadMoved() {
  std::ifstream stats("/proc/diskstats");
  std::string line;
  Moved moved;
  while (std::getline(stats, line)) {
    std::istringstream words(line);
    std::string major, minor, name;
    double reads = 0, read_merges = 0, read_sectors = 0, read_ms = 0;
    double writes = 0, write_merges = 0, written_sectors = 0;
    words >> major >> minor >> name >> reads >> read_merges >> read_sectors >> read_ms >> writes >>
        write_merges >> written_sectors;
    if (!std::filesystem::exists("/sys/block/" + name + "/device")) continue;
    moved.operations += reads + writes;
    moved.read_bytes += 512 * read_sectors;
    moved.written_bytes += 512 * written_sectors;
  }
  return moved;
}

// A file past the cache, gone with the test, and a block to move.
class DirectFile {
 public:
  DirectFile() : path_("/var/tmp/stepwell-truth-" + std::to_string(getpid())) {
    file_ = open(path_.c_str(), O_CREAT | O_RDWR | O_DIRECT | O_DSYNC | O_CLOEXEC, 0600);
    if (file_ < 0) why_ = std::string("/var/tmp takes no direct writes: ") + std::strerror(errno);
    void* block = nullptr;
    if (posix_memalign(&block, 4096, kBlockBytes) == 0) block_ = static_cast<char*>(block);
    std::memset(block_, 'x', kBlockBytes);
  }
  ~DirectFile() {
    unlink(path_.c_str());
    if (file_ >= 0) close(file_);
    free(block_);
  }
  // Why it cannot be, or ""; also where no disk of its own lies below it.
  std::string why_not() const {
    if (!why_.empty()) return why_;
    const Moved before = ReadMoved();
    if (pwrite(file_, block_, kBlockBytes, 0) != static_cast<ssize_t>(kBlockBytes)) return "full";
    const bool is_on_disk = ReadMoved().written_bytes - before.written_bytes >= kBlockBytes;
    return is_on_disk ? "" : "/var/tmp is on no disk of this machine";
  }
  void Write() const {
    for (std::size_t at = 0; at < kFileBytes; at += kBlockBytes) {
      ASSERT_EQ(pwrite(file_, block_, kBlockBytes, static_cast<off_t>(at)),
                static_cast<ssize_t>(kBlockBytes));
    }
  }
  // REQUIRES: written.
  void Read() const {
    for (std::size_t at = 0; at < kFileBytes; at += kBlockBytes) {
      ASSERT_EQ(pread(file_, block_, kBlockBytes, static_cast<off_t>(at)),
                static_cast<ssize_t>(kBlockBytes));
    }
  }

 private:
  const std::string path_;
  std::string why_;
  int file_ = -1;
  char* block_ = nullptr;
};

// What both sensors say of `load`, and the kernel around them.
class DiskTruth {
 public:
  explicit DiskTruth(const std::function<void()>& load) {
    const Moved before_first = ReadMoved();
    Measurement of_disk(disk_);
    const Moved after_first = ReadMoved();
    Measurement of_process(process_);
    load();
    own_ = of_process.End();
    own_seconds_ = of_process.seconds();
    const Moved before_last = ReadMoved();
    told_ = of_disk.End();
    seconds_ = of_disk.seconds();
    const Moved after_last = ReadMoved();
    const auto less = [](const Moved& a, const Moved& b) {
      return Moved{a.operations - b.operations, a.read_bytes - b.read_bytes,
                   a.written_bytes - b.written_bytes};
    };
    inner_ = less(before_last, after_first);
    outer_ = less(after_last, before_first);
  }
  double told(const char* metric) const { return told_.at(metric) * seconds_; }
  double own(const char* metric) const { return own_.at(metric) * own_seconds_; }
  const Moved& inner() const { return inner_; }
  const Moved& outer() const { return outer_; }

 private:
  DiskSensor disk_{KernelText("/")};
  ProcessSensor process_{getpid(), KernelText("/")};
  Values told_, own_;
  double seconds_ = 0, own_seconds_ = 0;
  Moved inner_, outer_;
};

// Of the time between its readings a test knows some microseconds less than the sensor.
constexpr double kLess = 0.99;
constexpr double kMore = 1.01;

TEST(DiskTruthTest, ADiskIsChargedWhatWasWrittenPastTheCache) {
  const DirectFile file;
  if (const std::string why = file.why_not(); !why.empty()) GTEST_SKIP() << why;
  const DiskTruth truth([&] { file.Write(); });
  EXPECT_NEAR(truth.own("disk_process_write"), kFileBytes, kMib);
  EXPECT_GE(truth.inner().written_bytes, kFileBytes);
  EXPECT_GE(truth.told("disk_throughput_write"), kLess * truth.inner().written_bytes);
  EXPECT_LE(truth.told("disk_throughput_write"), kMore * truth.outer().written_bytes);
  EXPECT_GE(truth.told("disk_iops"), kLess * truth.inner().operations);
  EXPECT_LE(truth.told("disk_iops"), kMore * truth.outer().operations + 1);
}

TEST(DiskTruthTest, ADiskIsChargedWhatWasReadPastTheCache) {
  const DirectFile file;
  if (const std::string why = file.why_not(); !why.empty()) GTEST_SKIP() << why;
  file.Write();
  const DiskTruth truth([&] { file.Read(); });
  EXPECT_NEAR(truth.own("disk_process_read"), kFileBytes, kMib);
  EXPECT_GE(truth.inner().read_bytes, kFileBytes);
  EXPECT_GE(truth.told("disk_throughput_read"), kLess * truth.inner().read_bytes);
  EXPECT_LE(truth.told("disk_throughput_read"), kMore * truth.outer().read_bytes);
  EXPECT_GE(truth.told("disk_iops"), kLess * truth.inner().operations);
  EXPECT_LE(truth.told("disk_iops"), kMore * truth.outer().operations + 1);
}

}  // namespace
}  // namespace stepwell::agent
