// What CpuSensor says, between what /proc/stat says just inside and just outside of it.
#include <gtest/gtest.h>

#include <fstream>

#include "client/agent/sensors/cpu_sensor.h"
#include "tests/unit/agent/sensors/truth/measurement.h"

namespace stepwell::agent {
namespace {

// Of all processors together, in clock ticks, as proc(5) orders them.
struct Ticks {
  double user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
  double busy() const { return user + nice + system + irq + softirq + steal; }
  double total() const { return busy() + idle + iowait; }
};

Ticks ReadTicks() {
  std::ifstream stat("/proc/stat");
  std::string word;
  Ticks ticks;
  stat >> word >> ticks.user >> ticks.nice >> ticks.system >> ticks.idle >> ticks.iowait >>
      ticks.irq >> ticks.softirq >> ticks.steal;
  return ticks;
}

TEST(CpuTruthTest, TheMachineIsAsBusyAsTheKernelSaysAndAtLeastAsBusyAsWhatWeBurned) {
  constexpr double kBurned = 0.4;
  CpuSensor sensor(KernelText("/"));
  const Ticks before_first = ReadTicks();
  Measurement measurement(sensor);
  const Ticks after_first = ReadTicks();
  Burn(kBurned);
  const Ticks before_last = ReadTicks();
  const Values values = measurement.End();
  const Ticks after_last = ReadTicks();
  const double told = values.at("cpu_util_simple");

  // The sensor's own two readings lie between ours: its ticks are no fewer than those between the
  // inner ones, no more than those between the outer ones. 0.01 is what it rounds to.
  const double busy_min = before_last.busy() - after_first.busy();
  const double busy_max = after_last.busy() - before_first.busy();
  const double total_min = before_last.total() - after_first.total();
  const double total_max = after_last.total() - before_first.total();
  EXPECT_GE(told, 100 * busy_min / total_max - 0.01);
  EXPECT_LE(told, 100 * busy_max / total_min + 0.01);
  // And the bounds are of use: not wider than the load.
  const auto ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  EXPECT_LT(busy_max - busy_min, kBurned * ticks_per_second);
  const double busy = told / 100 * total_max / ticks_per_second;
  EXPECT_GE(busy, kBurned - 0.05) << "less than what this process alone burned";
}

}  // namespace
}  // namespace stepwell::agent
