// What sensors say of loads of known size, beside the kernel's own counters read around them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <memory>

#include "client/agent/sensors/container_sensor.h"
#include "client/agent/sensors/memory_sensor.h"
#include "client/agent/sensors/network_sensor.h"
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
    const double before = OfContainer(measurement.End(), "memory_container_used");
    constexpr std::size_t kBytes = 64 << 20;
    const std::unique_ptr<char[]> memory(new char[kBytes]);
    for (std::size_t at = 0; at < kBytes; at += 4096) memory[at] = 1;
    const Values values = measurement.End();
    const double grown = OfContainer(values, "memory_container_used") - before;
    if (std::abs(grown - kBytes) > 4 * kMib) return "grown by " + std::to_string(grown);
    if (OfContainer(values, "memory_container_limit") != 268435456) return "another limit";
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
