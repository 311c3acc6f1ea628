// What sensors say of loads of known size, beside the kernel's own counters read around them.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>

#include "client/agent/sensors/container_sensor.h"
#include "client/agent/sensors/cpu_sensor.h"
#include "client/agent/sensors/disk_sensor.h"
#include "client/agent/sensors/memory_sensor.h"
#include "client/agent/sensors/network_sensor.h"
#include "client/agent/sensors/process_sensor.h"
#include "tests/unit/agent/sensors/machine.h"

namespace stepwell::agent {
namespace {

constexpr double kMib = 1 << 20;

// Two readings of this machine, and the time between them.
class Measurement {
 public:
  explicit Measurement(Sensor& sensor) : sensor_(sensor) { Read(); }
  Values End() {
    const absl::Duration began = read_at_;
    const Values values = Read();
    seconds_ = absl::ToDoubleSeconds(read_at_ - began);
    return values;
  }
  double seconds() const { return seconds_; }

 private:
  Values Read() {
    Reading reading(context_);
    read_at_ = RealClock::Get().Monotonic();
    sensor_.Read(reading);
    return ValuesOf(reading);
  }
  Sensor& sensor_;
  const ReadingContext context_{std::make_shared<SeriesPool>(), std::make_shared<SensorSelection>(),
                                &RealClock::Get()};
  absl::Duration read_at_;
  double seconds_ = 0;
};

double ProcessorSeconds() {
  timespec spent{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) * 1e-9;
}

// Of processor time, however long that takes.
void Burn(double seconds) {
  volatile double sink = 1;
  const double until = ProcessorSeconds() + seconds;
  while (ProcessorSeconds() < until) {
    for (int i = 0; i < 10000; ++i) sink = std::sqrt(sink + i);
  }
}

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

TEST(TruthTest, TheMachineIsAtLeastAsBusyAsWhatWeBurned) {
  CpuSensor sensor(KernelText("/"));
  Measurement measurement(sensor);
  Burn(0.4);
  const Values values = measurement.End();
  const double processors = static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
  const double busy = values.at("cpu_util_simple") / 100 * measurement.seconds() * processors;
  EXPECT_GE(busy, 0.4 - 0.05 * processors);
  EXPECT_LE(values.at("cpu_util_simple"), 100);
}

double MeminfoBytes(const char* key) {
  return static_cast<double>(*NumberBehind(*KernelText("/").Read("proc/meminfo"), key)) * 1024;
}

TEST(TruthTest, MemoryThatIsTouchedIsResidentAndFreeIsWhatTheKernelCallsAvailable) {
  constexpr std::size_t kBytes = 256 << 20;
  ProcessSensor process(getpid(), KernelText("/"));
  Measurement own(process);
  const double before = own.End().at("memory_process_resident");
  // More than malloc keeps, so that it is new.
  const std::unique_ptr<char[]> memory(new char[kBytes]);
  for (std::size_t at = 0; at < kBytes; at += 4096) memory[at] = 1;
  const double after = own.End().at("memory_process_resident");
  EXPECT_NEAR(after - before, kBytes, 4 * kMib);

  MemorySensor sensor(KernelText("/"));
  const double available_before = MeminfoBytes("MemAvailable");
  const Values values = Measurement(sensor).End();
  const double available_after = MeminfoBytes("MemAvailable");
  const double slack = 64 * kMib;  // others live here too
  EXPECT_GE(values.at("memory_free"), std::min(available_before, available_after) - slack);
  EXPECT_LE(values.at("memory_free"), std::max(available_before, available_after) + slack);
  EXPECT_EQ(values.at("memory_used") + values.at("memory_free"), MeminfoBytes("MemTotal"));
}

// Sectors written by the disk that holds `path`, as the kernel counts them; none where no disk of
// its own holds it.
std::optional<double> BytesWritten(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0 || major(found.st_dev) == 0) return std::nullopt;
  const auto text = KernelText("/").Read("sys/dev/block/" + std::to_string(major(found.st_dev)) +
                                         ":" + std::to_string(minor(found.st_dev)) + "/stat");
  if (!text.ok()) return std::nullopt;
  const std::vector<absl::string_view> words = Words(*text);
  return static_cast<double>(*Number(words[6])) * 512;
}

TEST(TruthTest, ADiskIsChargedWhatWasWrittenPastTheCache) {
  constexpr std::size_t kBytes = 32 << 20;
  const std::string path = "/var/tmp/stepwell-truth-" + std::to_string(getpid());
  const int file = open(path.c_str(), O_CREAT | O_WRONLY | O_DIRECT | O_DSYNC | O_CLOEXEC, 0600);
  if (file < 0) GTEST_SKIP() << "/var/tmp takes no direct writes: " << std::strerror(errno);
  unlink(path.c_str());
  void* block = nullptr;
  ASSERT_EQ(posix_memalign(&block, 4096, 1 << 20), 0);
  std::memset(block, 'x', 1 << 20);
  DiskSensor disk(KernelText("/"));
  ProcessSensor process(getpid(), KernelText("/"));
  const std::optional<double> kernel_before = BytesWritten("/var/tmp");
  Measurement of_disk(disk);
  Measurement of_process(process);
  for (std::size_t written = 0; written < kBytes; written += 1 << 20) {
    ASSERT_EQ(write(file, block, 1 << 20), 1 << 20);
  }
  const Values own = of_process.End();
  const Values values = of_disk.End();
  close(file);
  free(block);
  EXPECT_NEAR(own.at("disk_process_write") * of_process.seconds(), kBytes, kMib);
  const std::optional<double> kernel_after = BytesWritten("/var/tmp");
  if (!kernel_before || !kernel_after) GTEST_SKIP() << "/var/tmp is on no disk of its own";
  const double told = values.at("disk_throughput_write") * of_disk.seconds();
  // All disks together, of which that is one; the time between readings is known to some microseconds.
  EXPECT_GE(told, 0.99 * kBytes);
  EXPECT_GT(values.at("disk_iops") * of_disk.seconds(), 31);
  EXPECT_GE(*kernel_after - *kernel_before, kBytes);
}

// Runs `body` in a child process that may change what it likes; its text is "" where all went well,
// "skip: why" where it was not permitted.
std::string InChild(const std::function<std::string()>& body) {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    const std::string text = body();
    const ssize_t sent = write(ends[1], text.data(), text.size());
    _exit(sent == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  ssize_t got = 0;
  while ((got = read(ends[0], buffer, sizeof(buffer))) > 0) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return text;
}

void WriteFile(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

// Frames that nobody answers, of known size, from one end of a pair to the other.
bool SendFrames(const char* interface, int count, std::size_t bytes) {
  const int link = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (link < 0) return false;
  sockaddr_ll to{};
  to.sll_family = AF_PACKET;
  to.sll_ifindex = static_cast<int>(if_nametoindex(interface));
  to.sll_halen = ETH_ALEN;
  std::string frame(bytes, '\0');
  frame[12] = static_cast<char>(0x88);  // an experimental EtherType
  frame[13] = static_cast<char>(0xb5);
  for (int i = 0; i < count; ++i) {
    if (sendto(link, frame.data(), frame.size(), 0, reinterpret_cast<sockaddr*>(&to), sizeof(to)) !=
        static_cast<ssize_t>(bytes)) {
      close(link);
      return false;
    }
  }
  close(link);
  return true;
}

TEST(TruthTest, APairOfInterfacesIsChargedWhatWentThroughIt) {
  const std::string outcome = InChild([]() -> std::string {
    if (unshare(CLONE_NEWNET) != 0) return "skip: no network namespace of its own is permitted";
    WriteFile("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
    WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    if (system("ip link add truth0 type veth peer name truth1 2>/dev/null && "
               "ip link set truth0 up && ip link set truth1 up") != 0) {
      return "skip: no pair of interfaces can be made here";
    }
    NetworkSensor sensor(KernelText("/"));
    Measurement measurement(sensor);
    if (!SendFrames("truth0", 1000, 1400)) return "skip: no raw socket is permitted";
    const Values values = measurement.End();
    // What one end sends the other receives, and a little that the kernel says by itself. The time
    // between the readings is known to some microseconds.
    std::string wrong;
    for (const char* name : {"net_throughput_sent", "net_throughput_recv"}) {
      const double told = values.at(name) * measurement.seconds();
      if (std::abs(told - 1.4e6) > 1.4e4) {
        wrong += std::string(name) + " told " + std::to_string(told) + " of 1400000 bytes\n";
      }
    }
    return wrong;
  });
  if (outcome.rfind("skip: ", 0) == 0) GTEST_SKIP() << outcome.substr(6);
  EXPECT_EQ(outcome, "");
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
  const Group group("memory", "memory.limit_in_bytes", "268435456");
  if (!group.usable()) GTEST_SKIP() << "no group of the memory controller (v1) can be made here";
  const std::string outcome = InChild([&]() -> std::string {
    group.Join();
    ContainerMemorySensor sensor(KernelText("/"));
    Measurement measurement(sensor);
    const double before = measurement.End().at("memory_container_used");
    constexpr std::size_t kBytes = 64 << 20;
    const std::unique_ptr<char[]> memory(new char[kBytes]);
    for (std::size_t at = 0; at < kBytes; at += 4096) memory[at] = 1;
    const Values values = measurement.End();
    const double grown = values.at("memory_container_used") - before;
    if (std::abs(grown - kBytes) > 4 * kMib) return "grown by " + std::to_string(grown);
    if (values.at("memory_container_limit") != 268435456) return "another limit";
    return "";
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
      if (values.count(name) == 0) return std::string("no ") + name;
    }
    if (values.at("cpu_container_limit") != 0.2) return "another limit";
    const double told = values.at("cpu_util_container") / 100 * 0.2 * measurement.seconds();
    if (std::abs(told - burned) > 0.03) {
      return std::to_string(told) + " s told of " + std::to_string(burned);
    }
    // 200 ms at 20 ms of each 100: held back in nearly each period, unless others left it less.
    const bool was_starved = measurement.seconds() > 1.3;
    if (!was_starved && values.at("cpu_container_throttled") < 50) return "not throttled";
    return "";
  });
  EXPECT_EQ(outcome, "");
}

}  // namespace
}  // namespace stepwell::agent
