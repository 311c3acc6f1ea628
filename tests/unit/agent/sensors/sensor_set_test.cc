#include "client/agent/sensors/sensor_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "client/agent/sensors/machine_sensors.h"
#include "client/agent/sensors/nvml_finder.h"
#include "tests/support/places/places.h"
#include "tests/unit/agent/sensors/machine.h"
#include "tests/unit/agent/sensors/nvml_stub.h"

namespace stepwell::agent {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::string kMuteLibrary = BuildPlace("nvml_stub/mute/libnvidia-ml.so.1");

// Gives its count of readings as `memory_free`.
class CountingSensor final : public Sensor {
 public:
  explicit CountingSensor(const std::string& group, Cadence cadence = Cadence::kFast)
      : Sensor({"counting", group, cadence}) {}
  void Read(Reading& reading) override { reading.Add(metrics::kMemoryFree, ++count_); }
  void Forget() override { count_ = 100; }

 private:
  int count_ = 0;
};

std::shared_ptr<const SensorSelection> All(const SensorSelection::Texts& texts = {}) {
  return std::make_shared<SensorSelection>(SensorSelection::Parse(texts).value());
}

TEST(SensorSetTest, ReadsWhatIsDueAndWanted) {
  FakeClock clock;
  SensorSet set({}, clock);
  set.Add(std::make_unique<CountingSensor>("memory"));
  set.AddWatched(std::make_unique<CountingSensor>("memory", Cadence::kSlow));
  EXPECT_EQ(ValuesOf(set.Read(Cadence::kFast, All())).at("memory_free"), 1);
  EXPECT_EQ(ValuesOf(set.Read(Cadence::kFast, All())).at("memory_free"), 2);
  EXPECT_EQ(ValuesOf(set.Read(Cadence::kSlow, All())).at("memory_free"), 1);
  EXPECT_THAT(set.Read(Cadence::kFast, All({.groups = "gpu"})).samples(), IsEmpty());
  set.Forget();
  EXPECT_EQ(ValuesOf(set.Read(Cadence::kFast, All())).at("memory_free"), 101);
  EXPECT_EQ(ValuesOf(set.Read(Cadence::kSlow, All())).at("memory_free"), 101);
}

class SensorSeenBy final : public Sensor {
 public:
  SensorSeenBy(const std::string& name, const SystemMetric& metric, SeenBy seen_by)
      : Sensor({name, metric.metric_group, Cadence::kFast, seen_by}), metric_(metric) {}
  void Read(Reading& reading) override { reading.Add(metric_, ++count_); }
  void Forget() override { count_ = 100; }

 private:
  const SystemMetric& metric_;
  int count_ = 0;
};

// What was left to another for a while begins its rates anew.
TEST(SensorSetTest, LeavesToAnotherAgentWhatThatOneSees) {
  FakeClock clock;
  SensorSet set({}, clock);
  set.Add(std::make_unique<SensorSeenBy>("memory", metrics::kMemoryFree, SeenBy::kMachine));
  set.Add(std::make_unique<SensorSeenBy>("own", metrics::kMemoryContainerUsed, SeenBy::kContainer));
  set.AddWatched(std::make_unique<SensorSeenBy>("GPU-a", metrics::kGpuUtil, SeenBy::kDevice));
  set.AddWatched(std::make_unique<SensorSeenBy>("GPU-b", metrics::kGpuPower, SeenBy::kDevice));
  const auto names = [&](const SensorSelection& selection) {
    return ValuesOf(set.Read(Cadence::kFast, std::make_shared<SensorSelection>(selection)));
  };
  EXPECT_EQ(names({}).size(), 4u);
  SensorSelection left;
  left.LeaveToAnother({"GPU-a"});
  EXPECT_EQ(names(left), (Values{{"memory_container_used", 2}, {"gpu_power", 2}}));
  left.LeaveToAnother({"GPU-a", "GPU-b"});
  EXPECT_EQ(names(left), (Values{{"memory_container_used", 3}}));
  EXPECT_EQ(names({}), (Values{{"memory_container_used", 4},
                               {"memory_free", 101},
                               {"gpu_util", 101},
                               {"gpu_power", 101}}));
}

// --- with the stand-in of NVIDIA's library, on the real clock: its calls hang for real

class GpuSetTest : public ::testing::Test {
 protected:
  explicit GpuSetTest(SensorSet::Options options = {.patience_max = absl::Milliseconds(200),
                                                    .hang_min = absl::Milliseconds(200),
                                                    .first_look_patience = absl::Seconds(20),
                                                    .find_interval = absl::ZeroDuration()})
      : set_(options, RealClock::Get()) {
    set_.Add(std::make_unique<CountingSensor>("memory"));
    set_.AddFinder(
        std::make_unique<NvmlFinder>(stub_.library(), machine_.kernel(), RealClock::Get()));
  }
  Reading Read() { return set_.Read(Cadence::kFast, All()); }
  // Until `condition` holds of a reading.
  bool Eventually(const std::function<bool(const Reading&)>& condition) {
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    while (absl::Now() < deadline) {
      if (condition(Read())) return true;
    }
    return false;
  }
  Machine machine_;
  NvmlStub stub_{"gpus 2\ngpu 0 util_gpu 11\ngpu 1 util_gpu 22\n"};
  SensorSet set_;
};

TEST_F(GpuSetTest, FindsDevicesAtTheFirstTick) {
  const Values values = ValuesOf(Read());
  EXPECT_EQ(values.at("gpu_util{device=GPU-stub-0}"), 11);
  EXPECT_EQ(values.at("gpu_util{device=GPU-stub-1}"), 22);
  EXPECT_EQ(values.at("memory_free"), 1);
}

TEST_F(GpuSetTest, AgentRule16_AHangingDeviceIsNamedDelaysNobodyTwiceAndComesBack) {
  const std::size_t usual = Read().samples().size();
  stub_.Play("gpus 2\ngpu 0 hang nvmlDeviceGetUtilizationRates\ngpu 1 util_gpu 23\n");
  // It may still answer: then it is a sample of this tick.
  EXPECT_THAT(AbsencesOf(Read()), IsEmpty());
  const Reading first = Read();
  EXPECT_EQ(ValuesOf(first).at("gpu_util{device=GPU-stub-1}"), 23);
  EXPECT_EQ(ValuesOf(first).count("gpu_util{device=GPU-stub-0}"), 0u);
  EXPECT_THAT(AbsencesOf(first), Contains(HasSubstr("gpu failed GPU-stub-0: no answer for ")));
  EXPECT_EQ(first.absences().front().sample_count, static_cast<int>(usual - 1) / 2);
  // No further call is made, and nobody waits for the one that hangs.
  const absl::Time before = absl::Now();
  for (int i = 0; i < 20; ++i) EXPECT_THAT(AbsencesOf(Read()), Contains(HasSubstr("no answer")));
  EXPECT_LT(absl::Now() - before, 20 * absl::Milliseconds(200));
  stub_.Play("gpus 2\ngpu 0 util_gpu 12\ngpu 1 util_gpu 23\n");
  EXPECT_TRUE(Eventually([](const Reading& reading) {
    return ValuesOf(reading).count("gpu_util{device=GPU-stub-0}") == 1 &&
           reading.absences().empty();
  }));
}

TEST_F(GpuSetTest, ASlowDeviceIsWaitedForWithinPatience) {
  Read();
  stub_.Play("gpus 2\ngpu 0 slow nvmlDeviceGetUtilizationRates 20\ngpu 0 util_gpu 13\n");
  EXPECT_EQ(ValuesOf(Read()).at("gpu_util{device=GPU-stub-0}"), 13);
}

struct SlowRow {
  absl::Duration interval;
  int slow_ms;
  int tick_count;
};

// Ticks on a grid, as SamplingLoop takes them; ones that come too late for it are left out.
class SlowGpuTest : public GpuSetTest, public ::testing::WithParamInterface<SlowRow> {
 protected:
  SlowGpuTest() : GpuSetTest({.first_look_patience = absl::Seconds(20)}) {}
};

TEST_P(SlowGpuTest, AgentRule16_WhatItAnswersAfterItsTickIsASampleOfThatTick) {
  const SlowRow& row = GetParam();
  SensorSelection selection;
  selection.SetInterval(row.interval);
  const auto shared = std::make_shared<SensorSelection>(selection);
  set_.Read(Cadence::kFast, shared);
  stub_.Play(absl::StrCat("gpus 1\ngpu 0 slow nvmlDeviceGetUtilizationRates ", row.slow_ms,
                          "\ngpu 0 util_gpu 13\n"));
  const absl::Time began = absl::Now();
  std::vector<std::int64_t> asked;
  std::vector<std::int64_t> sampled;
  for (int i = 0; i <= row.tick_count; ++i) {
    absl::SleepFor(began + i * row.interval - absl::Now());
    // In whole intervals, so that a wrong tick is seen as one.
    const std::int64_t tick = 1000 + i;
    const Reading reading =
        set_.Read(Cadence::kFast, shared, {.time_us = tick, .is_last = i == row.tick_count});
    asked.push_back(tick);
    for (const PastReading& past : set_.TakePast()) {
      EXPECT_LT(past.time_us, tick);
      // On a busy machine the look before the first tick, and the other device, may be late, too.
      if (past.time_us < 1000) continue;
      if (ValuesOf(past.reading).count("gpu_power{device=GPU-stub-1}") > 0) continue;
      EXPECT_EQ(ValuesOf(past.reading).at("gpu_util{device=GPU-stub-0}"), 13);
      // Rates go on.
      if (row.interval == absl::Seconds(1) && !sampled.empty()) {
        EXPECT_EQ(ValuesOf(past.reading).count("gpu_sm_activity{device=GPU-stub-0}"), 1u);
      }
      sampled.push_back(past.time_us);
    }
    if (ValuesOf(reading).count("gpu_util{device=GPU-stub-0}") > 0) sampled.push_back(tick);
    for (const std::string& text : AbsencesOf(reading)) {
      if (text.find("GPU-stub-0") == std::string::npos) continue;
      EXPECT_THAT(text, Not(HasSubstr("hangs")));
    }
  }
  // Each once, in order; and as many as the device can give.
  EXPECT_TRUE(std::adjacent_find(sampled.begin(), sampled.end(), std::greater_equal<>()) ==
              sampled.end());
  EXPECT_GE(sampled.size(), 3u);
  EXPECT_EQ(sampled.front(), asked.front());
}

INSTANTIATE_TEST_SUITE_P(Rows, SlowGpuTest,
                         ::testing::Values(SlowRow{absl::Seconds(1), 300, 3},
                                           SlowRow{absl::Milliseconds(10), 300, 150},
                                           SlowRow{absl::Milliseconds(10), 30, 40}));

TEST_F(GpuSetTest, WhatHangsAtTheLastTickIsMissedForAllTicksThatLackIt) {
  const std::size_t usual = (Read().samples().size() - 1) / 2;
  stub_.Play("gpus 2\ngpu 0 hang nvmlDeviceGetUtilizationRates\n");
  Read();
  const Reading last = set_.Read(Cadence::kFast, All(), {.time_us = 5, .is_last = true});
  ASSERT_EQ(last.absences().size(), 1u);
  EXPECT_EQ(last.absences()[0].sample_count, static_cast<int>(2 * usual));
}

// A driver that hangs as the library begins: whether there are GPUs is not known, and that is said.
class HangingLibraryTest : public GpuSetTest {
 protected:
  HangingLibraryTest()
      : GpuSetTest({.hang_min = absl::Milliseconds(100),
                    .first_look_patience = absl::ZeroDuration(),
                    .find_interval = absl::ZeroDuration()}) {
    stub_.Play("gpus 2\nlibrary hang nvmlDeviceGetCount_v2\n");
  }
};

TEST_F(HangingLibraryTest, AgentRule16_ALookForDevicesThatHangsIsNamedAndComesBack) {
  const auto is_named = [](const Reading& reading) {
    const std::vector<std::string> texts = AbsencesOf(reading);
    return ValuesOf(reading).count("memory_free") == 1 && texts.size() == 1 &&
           texts[0].find("gpu failed looking for devices: no answer for ") != std::string::npos;
  };
  EXPECT_THAT(AbsencesOf(Read()), IsEmpty()) << "it may answer yet";
  EXPECT_TRUE(Eventually(is_named));
  stub_.Play("gpus 2\ngpu 0 util_gpu 12\ngpu 1 util_gpu 23\n");
  EXPECT_TRUE(Eventually([](const Reading& reading) {
    return ValuesOf(reading).count("gpu_util{device=GPU-stub-0}") == 1 &&
           reading.absences().empty();
  }));
}

TEST_F(GpuSetTest, ALostDeviceIsFoundAgainByALaterLook) {
  Read();
  // Both: while one is well, looks for the other are not due at once.
  stub_.Play("gpus 2\ngpu 0 fail * 15\ngpu 1 fail * 15\n");
  EXPECT_THAT(AbsencesOf(Read()), Contains(HasSubstr("gpu failed GPU-stub-0: ")));
  stub_.Play("gpus 2\ngpu 0 util_gpu 14\n");
  EXPECT_TRUE(Eventually([](const Reading& reading) {
    const Values values = ValuesOf(reading);
    const auto found = values.find("gpu_util{device=GPU-stub-0}");
    return found != values.end() && found->second == 14 && reading.absences().empty();
  }));
}

TEST(NvmlFinderTest, SilentWithoutAGpuAndToldWhereThereIsOneWithoutALibrary) {
  Machine machine;
  NvmlFinder finder("/nowhere/libnvidia-ml.so.1", machine.kernel(), machine.clock());
  EXPECT_THAT(finder.Find().absences, IsEmpty());
  machine.Write("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
  machine.Write("sys/bus/pci/devices/0000:01:00.0/class", "0x040300\n");  // its sound
  EXPECT_THAT(finder.Find().absences, IsEmpty());
  machine.Write("sys/bus/pci/devices/0000:01:00.1/vendor", "0x10de\n");
  machine.Write("sys/bus/pci/devices/0000:01:00.1/class", "0x030200\n");
  const Findings findings = finder.Find();
  ASSERT_EQ(findings.absences.size(), 1u);
  EXPECT_EQ(findings.absences[0].kind, AbsenceKind::kUnsupported);
  EXPECT_THAT(findings.absences[0].reason, HasSubstr("/nowhere/libnvidia-ml.so.1"));
}

// At each look again: it may be replaced while the agent runs.
TEST(NvmlFinderTest, ALibraryWithoutItsFirstCallIsToldWhereThereIsAGpuAndNeverCalled) {
  Machine machine;
  NvmlStub stub("gpus 1\n");
  NvmlFinder finder(kMuteLibrary, machine.kernel(), machine.clock());
  const Findings silent = finder.Find();
  EXPECT_THAT(silent.absences, IsEmpty());
  EXPECT_THAT(silent.sensors, IsEmpty());
  machine.Write("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
  machine.Write("sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
  for (int look = 0; look < 2; ++look) {
    const Findings findings = finder.Find();
    EXPECT_THAT(findings.sensors, IsEmpty());
    ASSERT_EQ(findings.absences.size(), 1u);
    EXPECT_EQ(findings.absences[0].kind, AbsenceKind::kUnsupported);
    EXPECT_EQ(findings.absences[0].metric_group, "gpu");
    EXPECT_THAT(findings.absences[0].reason, HasSubstr(kMuteLibrary + " is no NVML"));
  }
}

// Beside the sensors that are there.
TEST(MachineSensorsTest, ALibraryWithoutItsFirstCallHidesNothingElse) {
  Machine machine;
  machine.Write("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 900 kB\n");
  machine.Write("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
  machine.Write("sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
  MachineOptions options{.root = machine.root(), .nvml_path = kMuteLibrary};
  options.amd_paths = {"/nowhere", "/nowhere"};
  const auto set = MakeMachineSensors(options, RealClock::Get());
  // The first look may take longer than the first tick waits for it.
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  std::string told;
  while (told.empty() && absl::Now() < deadline) {
    const Reading reading = set->Read(Cadence::kFast, All());
    EXPECT_EQ(ValuesOf(reading).at("memory_free"), 900 * 1024);
    for (const std::string& text : AbsencesOf(reading)) {
      if (text.find("NVIDIA") != std::string::npos) told = text;
    }
  }
  EXPECT_THAT(told, AllOf(HasSubstr("gpu unsupported NVIDIA: "), HasSubstr("is no NVML")));
}

TEST(NvmlFinderTest, ADriverThatIsLoadedLaterIsFound) {
  Machine machine;
  machine.Write("sys/bus/pci/devices/0000:01:00.1/vendor", "0x10de\n");
  machine.Write("sys/bus/pci/devices/0000:01:00.1/class", "0x030200\n");
  NvmlStub stub("library fail nvmlInit_v2 9\n");
  NvmlFinder finder(stub.library(), machine.kernel(), machine.clock());
  const Findings none = finder.Find();
  ASSERT_EQ(none.absences.size(), 1u);
  EXPECT_EQ(none.absences[0].reason, "NVIDIA: nvmlInit: Driver Not Loaded");
  stub.Play("gpus 1\n");
  EXPECT_EQ(finder.Find().sensors.size(), 1u);
}

TEST(MachineSensorsTest, ReadsThisMachine) {
  const auto set = MakeMachineSensors({.root = "/", .nvml_path = "/nowhere"}, RealClock::Get());
  set->Read(Cadence::kFast, All());
  const Reading reading = set->Read(Cadence::kFast, All());
  EXPECT_GT(ValuesOf(reading).at("memory_free"), 0);
  for (const std::string& text : AbsencesOf(reading)) {
    EXPECT_THAT(text, HasSubstr("_pressure")) << "a kernel may lack that alone";
  }
}

}  // namespace
}  // namespace stepwell::agent
