// What NetworkSensor says of frames that went through a pair of interfaces, between what the interfaces
// say of themselves just inside and just outside of it: over netlink, not by the file that it reads.
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>

#include "client/agent/sensors/network_sensor.h"
#include "tests/unit/agent/sensors/truth/measurement.h"

namespace stepwell::agent {
namespace {

constexpr int kFrameCount = 1000;
constexpr std::size_t kFrameBytes = 1400;

// Frames that nobody answers, of known size, from one end of a pair to the other.
bool SendFrames(const char* interface, int count) {
  const int link = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (link < 0) return false;
  sockaddr_ll to{};
  to.sll_family = AF_PACKET;
  to.sll_ifindex = static_cast<int>(if_nametoindex(interface));
  to.sll_halen = ETH_ALEN;
  std::string frame(kFrameBytes, '\0');
  frame[12] = static_cast<char>(0x88);  // an experimental EtherType
  frame[13] = static_cast<char>(0xb5);
  int sent_count = 0;
  while (sent_count < count &&
         sendto(link, frame.data(), frame.size(), 0, reinterpret_cast<sockaddr*>(&to),
                sizeof(to)) == static_cast<ssize_t>(frame.size())) {
    ++sent_count;
  }
  close(link);
  return sent_count == count;
}

struct Counters {
  double sent = 0;
  double received = 0;
};

// Of each interface but the loopback; "" for all of them.
std::map<std::string, Counters> ReadCounters() {
  std::map<std::string, Counters> counters;
  ifaddrs* interfaces = nullptr;
  if (getifaddrs(&interfaces) != 0) return counters;
  for (const ifaddrs* each = interfaces; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_PACKET) continue;
    if ((each->ifa_flags & IFF_LOOPBACK) != 0) continue;
    const auto* const stats = static_cast<const rtnl_link_stats*>(each->ifa_data);
    for (const std::string& name : {std::string(each->ifa_name), std::string()}) {
      counters[name].sent += stats->tx_bytes;
      counters[name].received += stats->rx_bytes;
    }
  }
  freeifaddrs(interfaces);
  return counters;
}

// What is wrong with `told` bytes, between the inner two of four readings and the outer two; "" =
// nothing. Less than a byte is rounded off.
std::string Compare(const std::string& what, double told, double inner, double outer) {
  if (told >= inner - 1 && told <= outer + 1) return "";
  return what + ": told " + std::to_string(told) + " of " + std::to_string(inner) + " to " +
         std::to_string(outer) + " bytes\n";
}

// Until the frames are through, and some milliseconds: rates need them between their two readings, and
// a rounded rate is exact enough then. False = not within 20 s.
bool AwaitFrames(std::map<std::string, Counters> before) {
  constexpr double kSent = kFrameCount * kFrameBytes;
  const absl::Duration began = RealClock::Get().Monotonic();
  absl::Duration passed;
  bool is_through = false;
  while (!is_through && passed < absl::Seconds(20)) {
    auto now = ReadCounters();
    passed = RealClock::Get().Monotonic() - began;
    is_through = passed >= absl::Milliseconds(10) &&
                 now["truth0"].sent - before["truth0"].sent >= kSent &&
                 now["truth1"].received - before["truth1"].received >= kSent;
  }
  return is_through;
}

// A link that has just come up swallows what is sent, for as long as the kernel takes to switch it on.
bool AwaitLink() {
  const absl::Duration until = RealClock::Get().Monotonic() + absl::Seconds(20);
  while (ReadCounters()["truth1"].received == 0) {
    if (!SendFrames("truth0", 1) || RealClock::Get().Monotonic() > until) return false;
  }
  return true;
}

// In a network namespace of its own.
std::string MeasurePair() {
  if (!AwaitLink()) return "skip: no raw socket is permitted, or the pair carries nothing";
  NetworkSensor sensor(KernelText("/"));
  auto before_first = ReadCounters();
  Measurement measurement(sensor);
  auto after_first = ReadCounters();
  if (!SendFrames("truth0", kFrameCount)) return "a frame could not be sent";
  if (!AwaitFrames(after_first)) return "the kernel counted less than what was sent";
  auto before_last = ReadCounters();
  const Values values = measurement.End();
  auto after_last = ReadCounters();
  if (before_last.size() != 3) return "the pair does not tell its counters";
  std::string wrong;
  for (const std::string name : {"truth0", "truth1", ""}) {
    const auto told = [&](const char* direction) {
      const std::string metric =
          name.empty() ? std::string("net_throughput_") + direction
                       : "net_interface_" + std::string(direction) + "{interface=" + name + "}";
      return values.at(metric) * measurement.seconds();
    };
    wrong += Compare(name + " sent", told("sent"), before_last[name].sent - after_first[name].sent,
                     after_last[name].sent - before_first[name].sent);
    wrong += Compare(name + " received", told("recv"),
                     before_last[name].received - after_first[name].received,
                     after_last[name].received - before_first[name].received);
  }
  return wrong;
}

TEST(NetworkTruthTest, APairOfInterfacesIsChargedWhatItsOwnCountersSay) {
  const std::string outcome = InChild([]() -> std::string {
    if (unshare(CLONE_NEWNET) != 0) return "skip: no network namespace of its own is permitted";
    WriteFile("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
    WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    if (system("ip link add truth0 type veth peer name truth1 2>/dev/null && "
               "ip link set truth0 up && ip link set truth1 up") != 0) {
      return "skip: no pair of interfaces can be made here";
    }
    return MeasurePair();
  });
  if (outcome.rfind("skip: ", 0) == 0) GTEST_SKIP() << outcome.substr(6);
  EXPECT_EQ(outcome, "");
}

}  // namespace
}  // namespace stepwell::agent
