// A machine that is suspended, and a wall clock that is set: what rates and ticks make of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <time.h>

#include "absl/strings/str_cat.h"
#include "client/agent/sensors/boot_clock.h"
#include "client/agent/sensors/cpu_sensor.h"
#include "client/agent/sensors/disk_sensor.h"
#include "client/agent/sensors/network_sensor.h"
#include "client/agent/sensors/pressure_sensor.h"
#include "tests/unit/agent/sensors/truth/measurement.h"

namespace stepwell::agent {
namespace {

using ::testing::Le;

// CLOCK_MONOTONIC stands while the machine is suspended, CLOCK_BOOTTIME runs on, the wall clock is
// set by the hardware's at the end, or later by NTP, or by a person.
class SuspendedClock final : public Clock {
 public:
  absl::Time Now() const override { return wall_; }
  absl::Duration Monotonic() const override { return boot_; }
  void Run(absl::Duration by) {
    wall_ += by;
    boot_ += by;
  }
  void Suspend(absl::Duration by) { boot_ += by; }
  void SetWall(absl::Duration by) { wall_ += by; }

 private:
  absl::Time wall_ = absl::UnixEpoch() + absl::Hours(24 * 365 * 50);
  absl::Duration boot_ = absl::Hours(5);
};

class ClockTruthTest : public ::testing::Test {
 protected:
  ClockTruthTest() {
    std::filesystem::create_directories(machine_.root() / "sys/block/sda/device");
    machine_.Write("sys/class/net/eth0/device/vendor", "0x15b3\n");
    Work(0);
  }
  // What a machine does in so many seconds awake: half of its processor, 100 operations of 8 sectors
  // read and as much written each second, 1000 bytes sent and 2000 received, a tenth in want of
  // memory.
  void Work(int seconds) {
    seconds_ += seconds;
    const auto n = [this](int each) { return std::to_string(1'000'000 + each * seconds_); };
    machine_.Write("proc/stat", "cpu  " + n(50) + " 0 0 " + n(50) + " 0 0 0 0 0 0\n");
    machine_.Write("proc/diskstats", "   8 0 sda " + n(50) + " 0 " + n(400) + " 0 " + n(50) +
                                         " 0 " + n(400) + " 0\n");
    machine_.Write("proc/net/dev", "  eth0: " + n(2000) + " 1 0 0 0 0 0 0 " + n(1000) + " 1\n");
    machine_.Write("proc/pressure/memory", "some total=" + n(100'000) + "\nfull total=0\n");
  }
  Values Read() {
    Values all;
    for (const std::unique_ptr<Sensor>& sensor : sensors_) {
      Reading reading(context_);
      sensor->Read(reading);
      EXPECT_THAT(AbsencesOf(reading), ::testing::IsEmpty());
      all.merge(ValuesOf(reading));
    }
    return all;
  }
  std::vector<std::unique_ptr<Sensor>> MakeSensors() {
    std::vector<std::unique_ptr<Sensor>> sensors;
    sensors.push_back(std::make_unique<CpuSensor>(machine_.kernel()));
    sensors.push_back(std::make_unique<DiskSensor>(machine_.kernel()));
    sensors.push_back(std::make_unique<NetworkSensor>(machine_.kernel()));
    sensors.push_back(
        std::make_unique<PressureSensor>(PressureSensor::Of::kMemory, machine_.kernel()));
    return sensors;
  }

  Machine machine_;
  SuspendedClock clock_;
  const ReadingContext context_{std::make_shared<SeriesPool>(), std::make_shared<SensorSelection>(),
                                &clock_};
  int seconds_ = 0;
  std::vector<std::unique_ptr<Sensor>> sensors_ = MakeSensors();
};

const Values kUsual = {{"cpu_util_simple", 50},
                       {"disk_iops", 100},
                       {"disk_throughput_read", 400 * 512},
                       {"disk_throughput_write", 400 * 512},
                       {"net_throughput_sent", 1000},
                       {"net_throughput_recv", 2000},
                       {"net_interface_sent{interface=eth0}", 1000},
                       {"net_interface_recv{interface=eth0}", 2000},
                       {"memory_pressure_some", 10},
                       {"memory_pressure_full", 0}};

TEST_F(ClockTruthTest, AnHourSuspendedIsTimeThatPassedAndNoSpike) {
  Read();
  Work(1);
  clock_.Run(absl::Seconds(1));
  EXPECT_EQ(Read(), kUsual);
  // A second awake, and an hour not.
  Work(1);
  clock_.Run(absl::Seconds(1));
  clock_.Suspend(absl::Hours(1));
  const Values after = Read();
  for (const auto& [metric, usual] : kUsual) {
    SCOPED_TRACE(metric);
    EXPECT_THAT(after.at(metric), Le(usual));
  }
  // A rate times the time between its two readings is what the counter moved.
  EXPECT_NEAR(after.at("net_throughput_recv") * 3601, 2000, 3601 * 0.5);
  EXPECT_NEAR(after.at("disk_iops") * 3601, 100, 3601 * 0.005);
  EXPECT_NEAR(after.at("disk_throughput_read") * 3601, 400 * 512, 3601 * 0.5);
  // Its share is of what the kernel counted, which stands as well.
  EXPECT_EQ(after.at("cpu_util_simple"), 50);
  // The next is as usual.
  Work(1);
  clock_.Run(absl::Seconds(1));
  EXPECT_EQ(Read(), kUsual);
}

TEST_F(ClockTruthTest, AWallClockThatIsSetChangesNoRate) {
  Read();
  for (const absl::Duration by : {absl::Hours(1), -absl::Hours(2), absl::Milliseconds(1)}) {
    Work(1);
    clock_.Run(absl::Seconds(1));
    clock_.SetWall(by);
    EXPECT_EQ(Read(), kUsual) << by;
  }
}

TEST_F(ClockTruthTest, RatesRunOverTheTimeThatPassedNotOverTheInterval) {
  Read();
  // Late by a second and a half, early by a fifth.
  Work(5);
  clock_.Run(absl::Milliseconds(2500));
  EXPECT_EQ(Read().at("net_throughput_recv"), 4000);
  Work(1);
  clock_.Run(absl::Milliseconds(800));
  EXPECT_EQ(Read().at("net_throughput_recv"), 2500);
}

// As the kernel shows it to a process in a time namespace: CLOCK_BOOTTIME is an hour further than
// CLOCK_MONOTONIC, which is what an hour suspended leaves behind.
TEST(BootClockTruthTest, RunsOnWhileMonotonicStands) {
  const absl::Duration outside = BootClock::Get().Monotonic();
  const std::string outcome = InChild([&]() -> std::string {
    if (unshare(CLONE_NEWTIME) != 0) return "skip: no time namespace of its own is permitted";
    WriteFile("/proc/self/timens_offsets", "boottime 3600 0\n");
    return InChild([&]() -> std::string {
      timespec monotonic{};
      clock_gettime(CLOCK_MONOTONIC, &monotonic);
      const absl::Duration apart =
          BootClock::Get().Monotonic() - absl::DurationFromTimespec(monotonic);
      const absl::Duration since = BootClock::Get().Monotonic() - outside;
      if (since >= absl::Hours(1) && since < absl::Hours(1) + absl::Minutes(1) &&
          apart >= absl::Hours(1)) {
        return "";
      }
      return absl::StrCat("apart ", absl::FormatDuration(apart), ", since ",
                          absl::FormatDuration(since));
    });
  });
  if (outcome.rfind("skip: ", 0) == 0) GTEST_SKIP() << outcome.substr(6);
  EXPECT_EQ(outcome, "");
}

}  // namespace
}  // namespace stepwell::agent
