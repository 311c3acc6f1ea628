#include "client/agent/sensors/sensor_selection.h"

#include <gtest/gtest.h>

namespace stepwell::agent {
namespace {

struct WantsRow {
  const char* name;
  SensorSelection::Texts texts;
  const SystemMetric& metric;
  bool wants;
};

TEST(SensorSelectionTest, ChoosesByGroupAndMetric) {
  const WantsRow rows[] = {
      {"all by default", {}, metrics::kGpuUtil, true},
      {"but those on request", {}, metrics::kCpuUtilCore, false},
      {"on request", {.with = "cpu_util_core"}, metrics::kCpuUtilCore, true},
      {"on request of a group that is not wanted",
       {.groups = "gpu", .with = "cpu_util_core"},
       metrics::kCpuUtilCore,
       false},
      {"of a group", {.groups = "gpu,disk"}, metrics::kDiskIops, true},
      {"not of a group", {.groups = "gpu,disk"}, metrics::kMemoryFree, false},
      {"switched off", {.without = "disk_iops"}, metrics::kDiskIops, false},
      {"beside one that is", {.without = "disk_iops"}, metrics::kDiskUtil, true},
      {"off wins over on",
       {.without = "cpu_util_core", .with = "cpu_util_core"},
       metrics::kCpuUtilCore,
       false},
      {"blanks after a comma", {.groups = "gpu, disk"}, metrics::kDiskIops, true},
  };
  for (const WantsRow& row : rows) {
    SCOPED_TRACE(row.name);
    const auto selection = SensorSelection::Parse(row.texts);
    ASSERT_TRUE(selection.ok()) << selection.status();
    EXPECT_EQ(selection->Wants(row.metric), row.wants);
  }
}

struct BadRow {
  SensorSelection::Texts texts;
  const char* message;
};

TEST(SensorSelectionTest, SaysWhatIsWrongAndWhatIsAllowed) {
  const BadRow rows[] = {
      {{.groups = "gpus"}, "groups gpus: must be of cpu, disk, gpu, memory, network"},
      {{.without = "gpu_utl"},
       "without gpu_utl: must be a system metric; docs/metrics.md lists them"},
      {{.with = "x"}, "with x: must be a system metric; docs/metrics.md lists them"},
      {{.interval = "9ms"}, "interval 9ms: must be a duration like 250ms, from 10ms to 1h"},
      {{.interval = "61m"}, "interval 61m: must be a duration like 250ms, from 10ms to 1h"},
      {{.interval = "often"}, "interval often: must be a duration like 250ms, from 10ms to 1h"},
  };
  for (const BadRow& row : rows) {
    const auto selection = SensorSelection::Parse(row.texts);
    ASSERT_FALSE(selection.ok()) << row.message;
    EXPECT_EQ(selection.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(selection.status().message(), row.message);
  }
}

TEST(SensorSelectionTest, ADirectiveChangesGroupsAndIntervalWithinWhatIsAllowed) {
  SensorSelection selection = SensorSelection::Parse({.without = "gpu_power"}).value();
  selection.SetGroups({"gpu"});
  EXPECT_TRUE(selection.Wants(metrics::kGpuUtil));
  EXPECT_FALSE(selection.Wants(metrics::kGpuPower));
  EXPECT_FALSE(selection.Wants(metrics::kMemoryFree));
  selection.SetGroups({});
  EXPECT_TRUE(selection.Wants(metrics::kMemoryFree));
  selection.SetInterval(absl::Milliseconds(1));
  EXPECT_EQ(selection.interval(), absl::Milliseconds(10));
  selection.SetInterval(absl::Hours(5));
  EXPECT_EQ(selection.interval(), absl::Hours(1));
}

}  // namespace
}  // namespace stepwell::agent
