// What sensors say of memory that is touched between their readings, beside what the kernel says of it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "client/agent/sensors/memory_sensor.h"
#include "client/agent/sensors/process_sensor.h"
#include "tests/unit/agent/sensors/truth/measurement.h"

namespace stepwell::agent {
namespace {

constexpr std::size_t kBytes = 128 << 20;

TEST(MemoryTruthTest, WhatAProcessTouchesIsResident) {
  ProcessSensor process(getpid(), KernelText("/"));
  Measurement own(process);
  const double before = own.End().at("memory_process_resident");
  const TouchedMemory memory(kBytes);
  EXPECT_NEAR(own.End().at("memory_process_resident") - before, kBytes, 4 * kMib);
}

double MeminfoBytes(const char* key) {
  return static_cast<double>(*NumberBehind(*KernelText("/").Read("proc/meminfo"), key)) * 1024;
}

// One reading of the sensor, between two of the kernel's number.
struct Look {
  explicit Look(Measurement& measurement) {
    const double before = MeminfoBytes("MemAvailable");
    values = measurement.End();
    const double after = MeminfoBytes("MemAvailable");
    available_min = std::min(before, after);
    available_max = std::max(before, after);
  }
  double told() const { return values.at("memory_free"); }
  // Others left the number alone meanwhile.
  bool still() const { return available_max - available_min <= kMib; }

  Values values;
  double available_min = 0;
  double available_max = 0;
};

// Others live here too: where they did not stand still while the kernel was asked, or gave back as much
// as was touched, nothing is known, and more is touched. What was touched before is kept: what a
// processor has just got back it gives out again without counting it.
TEST(MemoryTruthTest, WhatIsTouchedBetweenTwoReadingsIsNoLongerFree) {
  constexpr std::size_t kTriesMax = 16;
  const double kept_max = MeminfoBytes("MemAvailable") / 2;
  MemorySensor sensor(KernelText("/"));
  Measurement measurement(sensor);
  std::vector<TouchedMemory> kept;
  while (kept.size() < kTriesMax && static_cast<double>(kept.size() + 1) * kBytes <= kept_max) {
    const Look first(measurement);
    kept.emplace_back(kBytes);
    const Look last(measurement);
    const double fall = first.available_max - last.available_max;
    if (!first.still() || !last.still() || fall < kBytes / 2) continue;
    EXPECT_NEAR(first.told() - last.told(), fall, 2 * kMib);
    for (const Look* look : {&first, &last}) {
      EXPECT_GE(look->told(), look->available_min - kMib);
      EXPECT_LE(look->told(), look->available_max + kMib);
      EXPECT_EQ(look->values.at("memory_used") + look->told(), MeminfoBytes("MemTotal"));
      EXPECT_EQ(look->values.at("memory_total"), MeminfoBytes("MemTotal"));
    }
    return;
  }
  GTEST_SKIP() << "others on this machine move more memory than this test does";
}

}  // namespace
}  // namespace stepwell::agent
