#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "client/agent/sensors/cpu_sensor.h"
#include "client/agent/sensors/disk_sensor.h"
#include "client/agent/sensors/infiniband_sensor.h"
#include "client/agent/sensors/load_sensor.h"
#include "client/agent/sensors/memory_sensor.h"
#include "client/agent/sensors/mount_sensor.h"
#include "client/agent/sensors/network_sensor.h"
#include "client/agent/sensors/pressure_sensor.h"
#include "tests/unit/agent/sensors/machine.h"

namespace stepwell::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

// user nice system idle iowait irq softirq steal guest guest_nice
constexpr char kStat[] =
    "cpu  100 0 50 800 50 0 0 0 40 0\ncpu0 60 0 20 400 20 0 0 0 40 0\n"
    "cpu1 40 0 30 400 30 0 0 0 0 0\nintr 5 1 2\nbtime 5\n";
constexpr char kLoad[] = "0.50 1.25 2.00 3/567 8910\n";

TEST(CpuSensorTest, AgentRule16_UtilIsWhatWasBusyOfWhatPassedAndNeverStartsWithAZero) {
  Machine machine;
  machine.Write("proc/stat", kStat);
  CpuSensor sensor(machine.kernel());
  EXPECT_THAT(machine.ReadValues(sensor), IsEmpty());
  // Busy 40 of 100 ticks; guest time is part of user's already.
  machine.Write("proc/stat", "cpu  130 0 60 840 70 0 0 0 60 0\ncpu0 60 0 20 400 20 0 0 0 0 0\n");
  EXPECT_EQ(machine.ReadValues(sensor).at("cpu_util_simple"), 40);
}

TEST(CpuSensorTest, CoresComeOnRequest) {
  Machine machine;
  machine.Write("proc/stat", kStat);
  CpuSensor sensor(machine.kernel());
  machine.Select({.with = "cpu_util_core"});
  EXPECT_THAT(machine.ReadValues(sensor), IsEmpty());
  machine.Write("proc/stat",
                "cpu  200 0 50 900 50 0 0 0 40 0\ncpu0 160 0 20 400 20 0 0 0 40 0\n"
                "cpu1 40 0 30 500 30 0 0 0 0 0\nintr 5\n");
  EXPECT_THAT(machine.ReadValues(sensor),
              UnorderedElementsAre(Pair("cpu_util_simple", 50), Pair("cpu_util_core{core=0}", 100),
                                   Pair("cpu_util_core{core=1}", 0)));
}

TEST(LoadSensorTest, OverThreeSpansAsOftenAsTheKernelCounts) {
  Machine machine;
  machine.Write("proc/loadavg", kLoad);
  LoadSensor sensor(machine.kernel());
  EXPECT_THAT(machine.ReadValues(sensor),
              UnorderedElementsAre(Pair("cpu_load_1m", 0.5), Pair("cpu_load_5m", 1.25),
                                   Pair("cpu_load_15m", 2)));
  EXPECT_EQ(IntervalOf(sensor.face().cadence, absl::Seconds(1)), absl::Seconds(5));
  EXPECT_EQ(IntervalOf(sensor.face().cadence, absl::Minutes(1)), absl::Minutes(1));
  machine.Remove("proc/loadavg");
  EXPECT_THAT(AbsencesOf(machine.Read(sensor)), ElementsAre(HasSubstr("cpu unsupported load: ")));
  machine.Select({.without = "cpu_load_1m,cpu_load_5m,cpu_load_15m"});
  EXPECT_THAT(AbsencesOf(machine.Read(sensor)), IsEmpty());
}

TEST(MemorySensorTest, AgentRule16_FreeIsWhatIsAvailable) {
  Machine machine;
  machine.Write("proc/meminfo",
                "MemTotal:        1000 kB\nMemFree:           10 kB\nMemAvailable:     900 kB\n"
                "Buffers:           20 kB\nCached:           300 kB\nSwapCached:        7 kB\n"
                "SwapTotal:        500 kB\nSwapFree:         450 kB\nSReclaimable:      30 kB\n");
  MemorySensor sensor(machine.kernel());
  EXPECT_THAT(
      machine.ReadValues(sensor),
      UnorderedElementsAre(Pair("memory_free", 900 * 1024), Pair("memory_used", 100 * 1024),
                           Pair("memory_total", 1000 * 1024), Pair("memory_cached", 350 * 1024),
                           Pair("memory_swap_used", 50 * 1024)));
}

TEST(PressureSensorTest, ShareOfTimeFromTotalsNotFromAveragesThatLag) {
  Machine machine;
  machine.Write("proc/pressure/io",
                "some avg10=77.00 avg60=9.00 avg300=9.00 total=1000000\n"
                "full avg10=66.00 avg60=9.00 avg300=9.00 total=400000\n");
  PressureSensor sensor(PressureSensor::Of::kDisk, machine.kernel());
  EXPECT_THAT(machine.ReadValues(sensor), IsEmpty());
  machine.Advance(absl::Milliseconds(500));
  machine.Write("proc/pressure/io",
                "some avg10=0.00 avg60=0.00 avg300=0.00 total=1250000\n"
                "full avg10=0.00 avg60=0.00 avg300=0.00 total=450000\n");
  EXPECT_THAT(machine.ReadValues(sensor),
              UnorderedElementsAre(Pair("disk_pressure_some", 50), Pair("disk_pressure_full", 10)));
}

constexpr char kDisks[] =
    "   8 0 sda 10 0 100 0 20 0 200 0 0 0 0 0 0 0 0\n"
    "   8 1 sda1 10 0 100 0 20 0 200 0 0 0 0 0 0 0 0\n";

constexpr char kNetDev[] =
    "Inter-|   Receive\n face |bytes    packets\n"
    "    lo: 999 1 0 0 0 0 0 0 999 1 0 0 0 0 0 0\n"
    "  eth0:1000 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0\n"
    "  veth1: 10 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n";

TEST(NetworkSensorTest, AgentRule16_AllButLoTogetherAndRealOnesByThemselves) {
  Machine machine;
  machine.Write("proc/net/dev", kNetDev);
  machine.Write("sys/class/net/eth0/device/vendor", "0x15b3\n");
  NetworkSensor sensor(machine.kernel());
  EXPECT_THAT(machine.ReadValues(sensor), IsEmpty());
  machine.Advance(absl::Milliseconds(500));
  machine.Write("proc/net/dev",
                "    lo: 99999 1 0 0 0 0 0 0 99999 1 0 0 0 0 0 0\n"
                "  eth0:3000 1 0 0 0 0 0 0 1500 1 0 0 0 0 0 0\n"
                "  veth1: 20 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0\n"
                "  wg0: 7777 1 0 0 0 0 0 0 7777 1 0 0 0 0 0 0\n");
  EXPECT_THAT(
      machine.ReadValues(sensor),
      UnorderedElementsAre(Pair("net_throughput_recv", 4020), Pair("net_throughput_sent", 2004),
                           Pair("net_interface_recv{interface=eth0}", 4000),
                           Pair("net_interface_sent{interface=eth0}", 2000)));
}

// A pod's eth0 is one end of a pair.
TEST(NetworkSensorTest, WithoutADeviceEachButLoIsNamed) {
  Machine machine;
  machine.Write("proc/net/dev", kNetDev);
  NetworkSensor sensor(machine.kernel());
  machine.Read(sensor);
  machine.Advance(absl::Seconds(1));
  machine.Write("proc/net/dev",
                "    lo: 99999 1 0 0 0 0 0 0 99999 1 0 0 0 0 0 0\n"
                "  eth0:3000 1 0 0 0 0 0 0 1500 1 0 0 0 0 0 0\n"
                "  veth1: 20 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0\n");
  EXPECT_THAT(
      machine.ReadValues(sensor),
      UnorderedElementsAre(Pair("net_throughput_recv", 2010), Pair("net_throughput_sent", 1002),
                           Pair("net_interface_recv{interface=eth0}", 2000),
                           Pair("net_interface_sent{interface=eth0}", 1000),
                           Pair("net_interface_recv{interface=veth1}", 10),
                           Pair("net_interface_sent{interface=veth1}", 2)));
}

TEST(InfinibandSensorTest, CountersAreWordsOfFourOctets) {
  Machine machine;
  InfinibandFinder finder(machine.kernel());
  EXPECT_THAT(finder.Find().sensors, IsEmpty());
  const std::string port = "sys/class/infiniband/mlx5_0/ports/1/counters/";
  machine.Write(port + "port_xmit_data", "1000\n");
  machine.Write(port + "port_rcv_data", "2000\n");
  const Findings findings = finder.Find();
  ASSERT_THAT(findings.sensors, SizeIs(2)) << "an adapter that came later";
  Sensor& sensor = *findings.sensors[0];
  EXPECT_THAT(finder.Find().sensors, IsEmpty()) << "known by now";
  EXPECT_THAT(machine.ReadValues(sensor), IsEmpty());
  machine.Advance(absl::Seconds(2));
  machine.Write(port + "port_xmit_data", "5000\n");
  machine.Write(port + "port_rcv_data", "12000\n");
  EXPECT_THAT(machine.ReadValues(sensor),
              UnorderedElementsAre(Pair("net_infiniband_sent{port=mlx5_0/1}", 8000),
                                   Pair("net_infiniband_recv{port=mlx5_0/1}", 20000)));
  machine.Remove(port + "port_xmit_data");
  EXPECT_THAT(AbsencesOf(machine.Read(sensor)),
              ElementsAre(HasSubstr("network unsupported mlx5_0/1: ")));
}

TEST(InfinibandSensorTest, OfVirtualFunctionsWithoutEndSomeAreSampledAndTheRestIsTold) {
  Machine machine;
  for (int i = 0; i < 30; ++i) {
    machine.Write(absl::StrCat("sys/class/infiniband/mlx5_", i, "/ports/1/counters/link_downed"),
                  "0\n");
  }
  InfinibandFinder finder(machine.kernel());
  const Findings findings = finder.Find();
  EXPECT_THAT(findings.sensors, SizeIs(2 * InfinibandFinder::kPortCountMax));
  ASSERT_THAT(findings.absences, SizeIs(1));
  EXPECT_THAT(findings.absences.front().reason, HasSubstr(" 6 are not sampled"));
}

TEST(InfinibandSensorTest, HealthIsToldOfWhatTheAdapterCounts) {
  Machine machine;
  const std::string folder = "sys/class/infiniband/mlx5_0/ports/1/counters/";
  const std::map<std::string, int> totals = {{"port_xmit_packets", 10}, {"port_rcv_packets", 20},
                                             {"port_xmit_wait", 30},    {"port_xmit_discards", 0},
                                             {"port_rcv_errors", 5},    {"symbol_error", 7}};
  const auto write = [&](int times) {
    for (const auto& [name, total] : totals) {
      machine.Write(folder + name, std::to_string(total * times) + "\n");
    }
  };
  write(1);
  InfinibandHealthSensor sensor("mlx5_0/1", folder, machine.kernel());
  EXPECT_EQ(sensor.face().cadence, Cadence::kSlow);
  const Reading first = machine.Read(sensor);
  EXPECT_THAT(ValuesOf(first), IsEmpty());
  EXPECT_THAT(AbsencesOf(first), ElementsAre(HasSubstr("net_infiniband_link_downed")));
  machine.Advance(absl::Seconds(10));
  write(2);
  EXPECT_THAT(machine.ReadValues(sensor),
              UnorderedElementsAre(Pair("net_infiniband_packets_sent{port=mlx5_0/1}", 1),
                                   Pair("net_infiniband_packets_recv{port=mlx5_0/1}", 2),
                                   Pair("net_infiniband_send_waits{port=mlx5_0/1}", 3),
                                   Pair("net_infiniband_send_discards{port=mlx5_0/1}", 0),
                                   Pair("net_infiniband_recv_errors{port=mlx5_0/1}", 0.5),
                                   Pair("net_infiniband_symbol_errors{port=mlx5_0/1}", 0.7)));
}

TEST(MountSensorTest, AgentRule16_AsksLocalDisksAndLeavesServersToSensorsOfTheirOwn) {
  Machine machine;
  std::filesystem::create_directories(machine.root() / "data");
  machine.Write("proc/self/mountinfo",
                "27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
                "30 27 0:50 / /data rw - nfs4 server:/x rw\n");
  LocalMountSensor local(machine.kernel());
  const Values values = machine.ReadValues(local);
  ASSERT_EQ(values.size(), 1u);
  EXPECT_GT(values.at("disk_util{mount=/}"), 0);
  EXPECT_LE(values.at("disk_util{mount=/}"), 100);

  MountFinder finder(machine.kernel());
  const Findings findings = finder.Find();
  ASSERT_EQ(findings.sensors.size(), 1u);
  EXPECT_EQ(findings.sensors[0]->face().name, "/data");
  EXPECT_EQ(machine.ReadValues(*findings.sensors[0]).count("disk_util{mount=/data}"), 1u);
  EXPECT_TRUE(finder.Find().sensors.empty());
  // Once it is unmounted, what lies below is not taken for it.
  machine.Write("proc/self/mountinfo", "27 1 254:0 / / rw - ext4 /dev/vda rw\n");
  EXPECT_THAT(machine.ReadValues(*findings.sensors[0]), IsEmpty());
}

struct BadRow {
  const char* name;
  const char* path;
  const char* text;  // null = the file is gone
  std::string absence;
};

std::vector<std::unique_ptr<Sensor>> AllOf(const Machine& machine) {
  std::vector<std::unique_ptr<Sensor>> sensors;
  sensors.push_back(std::make_unique<CpuSensor>(machine.kernel()));
  sensors.push_back(std::make_unique<LoadSensor>(machine.kernel()));
  sensors.push_back(std::make_unique<MemorySensor>(machine.kernel()));
  sensors.push_back(std::make_unique<DiskSensor>(machine.kernel()));
  sensors.push_back(std::make_unique<NetworkSensor>(machine.kernel()));
  sensors.push_back(
      std::make_unique<PressureSensor>(PressureSensor::Of::kMemory, machine.kernel()));
  sensors.push_back(std::make_unique<LocalMountSensor>(machine.kernel()));
  return sensors;
}

TEST(HostSensorsTest, AgentRule16_ABadSourceIsNamedAndComesBack) {
  const BadRow rows[] = {
      {"no stat", "proc/stat", nullptr, "cpu unsupported cpu_util_simple: /proc/stat: No such"},
      {"short stat", "proc/stat", "cpu  1 2 3\n", "cpu failed cpu_util_simple: /proc/stat: a cpu"},
      {"stat of words", "proc/stat", "cpu  a b c d e f g h\n", "cpu failed"},
      {"stat without cpu", "proc/stat", "btime 3\n", "cpu failed cpu_util_simple: /proc/stat: no"},
      {"no load", "proc/loadavg", "x y z 1/2 3\n", "cpu failed load: /proc/loadavg: no"},
      {"no meminfo", "proc/meminfo", nullptr, "memory unsupported memory: /proc/meminfo"},
      {"no MemTotal", "proc/meminfo", "MemFree: 4 kB\n",
       "memory unsupported memory: /proc/meminfo"},
      {"no MemAvailable", "proc/meminfo", "MemTotal: 4 kB\n",
       "memory unsupported memory_free: /pr"},
      {"empty MemAvailable", "proc/meminfo", "MemTotal: 5 kB\nMemAvailable:\n",
       "memory failed memory_free: /proc/meminfo: MemAvailable is no number"},
      {"no diskstats", "proc/diskstats", nullptr, "disk unsupported disk: /proc/diskstats"},
      {"short diskstats", "proc/diskstats", "8 0 sda 1 2\n", "disk failed disk: /proc/diskstats"},
      {"negative diskstats", "proc/diskstats", "8 0 sda -1 0 1 0 1 0 1 0\n", "disk failed"},
      {"no net", "proc/net/dev", nullptr, "network unsupported network: /proc/net/dev"},
      {"short net", "proc/net/dev", "  eth0: 1 2 3\n", "network failed network: /proc/net/dev"},
      {"no pressure", "proc/pressure/memory", nullptr, "memory unsupported memory_pressure: /pro"},
      {"pressure of words", "proc/pressure/memory", "some total=x\n", "memory failed memory_press"},
      {"no mounts", "proc/self/mountinfo", nullptr, "disk unsupported mounts: /proc/self/mountin"},
      {"short mounts", "proc/self/mountinfo", "22 1 0:21 /\n", "disk failed mounts: /proc/self/m"},
      {"mounts without type", "proc/self/mountinfo", "1 2 0:3 / / rw a b c d -\n", "disk failed"},
  };
  const auto write_all = [](const Machine& machine) {
    machine.Write("proc/stat", kStat);
    machine.Write("proc/loadavg", kLoad);
    machine.Write("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 900 kB\n");
    machine.Write("proc/diskstats", kDisks);
    machine.Write("proc/net/dev", kNetDev);
    machine.Write("proc/pressure/memory", "some total=5\nfull total=4\n");
    machine.Write("proc/self/mountinfo", "27 1 254:0 / / rw - ext4 /dev/vda rw\n");
  };
  for (const BadRow& row : rows) {
    SCOPED_TRACE(row.name);
    Machine machine;
    std::filesystem::create_directories(machine.root() / "sys/block/sda/device");
    write_all(machine);
    const std::vector<std::unique_ptr<Sensor>> sensors = AllOf(machine);
    const auto read = [&] {
      std::vector<std::string> absences;
      machine.Advance(absl::Seconds(1));
      for (const auto& sensor : sensors) {
        for (const std::string& text : AbsencesOf(machine.Read(*sensor))) absences.push_back(text);
      }
      return absences;
    };
    EXPECT_THAT(read(), IsEmpty());
    if (row.text == nullptr) {
      machine.Remove(row.path);
    } else {
      machine.Write(row.path, row.text);
    }
    EXPECT_THAT(read(), ElementsAre(HasSubstr(row.absence)));
    write_all(machine);
    EXPECT_THAT(read(), IsEmpty());
  }
}

TEST(HostSensorsTest, CountersThatWentBackGiveNoRate) {
  Machine machine;
  std::filesystem::create_directories(machine.root() / "sys/block/sda/device");
  machine.Write("proc/stat", kStat);
  machine.Write("proc/diskstats", kDisks);
  machine.Write("proc/net/dev", kNetDev);
  CpuSensor cpu(machine.kernel());
  DiskSensor disk(machine.kernel());
  NetworkSensor network(machine.kernel());
  machine.Read(cpu);
  machine.Read(disk);
  machine.Read(network);
  machine.Advance(absl::Seconds(1));
  machine.Write("proc/stat", "cpu  1 0 1 1 1 0 0 0 0 0\n");
  machine.Write("proc/diskstats", "   8 0 sda 1 0 1 0 2 0 2 0 0 0 0 0 0 0 0\n");
  machine.Write("proc/net/dev", "  eth0:1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n");
  EXPECT_EQ(machine.ReadValues(cpu).count("cpu_util_simple"), 0u);
  EXPECT_THAT(machine.ReadValues(disk), IsEmpty());
  EXPECT_THAT(machine.ReadValues(network), IsEmpty());
}

}  // namespace
}  // namespace stepwell::agent
