#include "client/agent/sensors/amd_sensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "client/agent/sensors/system_metrics.h"
#include "tests/support/places/places.h"
#include "tests/unit/agent/sensors/machine.h"

namespace stepwell::agent {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// Of what the library is asked for.
std::vector<std::string> AbsencesOfAsked(const Reading& reading) {
  std::vector<std::string> texts = AbsencesOf(reading);
  std::erase_if(texts, [](const std::string& text) {
    return text.find("not read from AMD's libraries") != std::string::npos;
  });
  return texts;
}

// By reason.
std::map<std::string, double> ThrottleOf(const Reading& reading) {
  std::map<std::string, double> reasons;
  for (const SensedSample& sample : reading.samples()) {
    if (sample.series->name == "gpu_throttle") {
      reasons[sample.series->labels.at("reason")] = sample.value;
    }
  }
  return reasons;
}

std::string Stub(const std::string& name) { return BuildPlace("amd_stub/" + name + ".so"); }

class AmdSensorTest : public ::testing::Test {
 protected:
  std::vector<std::unique_ptr<Sensor>> Find(const AmdLibrary::Paths& paths) {
    machine_.Write("sys/bus/pci/drivers/amdgpu/0000:c1:00.0", "");
    AmdFinder finder(paths, machine_.kernel());
    Findings findings = finder.Find();
    EXPECT_THAT(findings.absences, IsEmpty());
    EXPECT_THAT(finder.Find().sensors, IsEmpty());
    return std::move(findings.sensors);
  }
  Values ReadTwice(Sensor& sensor) {
    machine_.Read(sensor);
    machine_.Advance(absl::Milliseconds(500));
    return machine_.ReadValues(sensor);
  }
  Machine machine_;
};

TEST_F(AmdSensorTest, AmdSmiGivesEachValueInTheUnitOfTheTable) {
  const auto sensors = Find({Stub("amd_smi_stub"), "/nowhere"});
  ASSERT_EQ(sensors.size(), 2u);
  const std::string device = "{device=GPU-74a1ff74-0000-1000-80a7-000000000000}";
  const Values values = ReadTwice(*sensors[0]);
  EXPECT_NEAR(values.at("gpu_energy" + device), 30.5, 1e-6);
  EXPECT_NEAR(values.at("gpu_power" + device), 30.5, 1e-6);
  const std::pair<const char*, double> rows[] = {{"gpu_util", 60},
                                                 {"gpu_memory_util", 30},
                                                 {"gpu_total_memory", 200000},
                                                 {"gpu_used_memory", 50000},
                                                 {"gpu_free_memory", 150000},
                                                 {"gpu_temperature", 55},
                                                 {"gpu_sm_clock", 2100e6},
                                                 {"gpu_memory_temperature", 66},
                                                 {"gpu_memory_clock", 1300e6},
                                                 {"gpu_power_limit", 550},
                                                 {"gpu_nvlink_recv", 2 * 3072 * 1024.0},
                                                 {"gpu_nvlink_sent", 2 * 1536 * 1024.0}};
  for (const auto& [name, value] : rows) EXPECT_EQ(values.at(name + device), value) << name;
}

TEST_F(AmdSensorTest, AChipThatCountsThrottledCyclesTellsItsReasonsFromTheSecondReadingOn) {
  const auto sensors = Find({Stub("amd_smi_stub"), "/nowhere"});
  EXPECT_THAT(ThrottleOf(machine_.Read(*sensors[0])), IsEmpty());
  for (int i = 0; i < 2; ++i) {
    machine_.Advance(absl::Seconds(1));
    EXPECT_THAT(
        ThrottleOf(machine_.Read(*sensors[0])),
        UnorderedElementsAre(Pair("power_cap", 1), Pair("sw_thermal", 0), Pair("hw_thermal", 0)));
  }
  // Nothing is averaged over a pause, nor any link's rate.
  sensors[0]->Forget();
  machine_.Advance(absl::Minutes(10));
  const Reading reading = machine_.Read(*sensors[0]);
  EXPECT_THAT(ThrottleOf(reading), IsEmpty());
  for (const auto& [name, value] : ValuesOf(reading)) EXPECT_THAT(name, Not(HasSubstr("nvlink")));
}

TEST_F(AmdSensorTest, AChipThatSaysWhatThrottlesItTellsItsReasonsAtOnce) {
  const auto sensors = Find({Stub("amd_smi_stub"), "/nowhere"});
  EXPECT_THAT(ThrottleOf(machine_.Read(*sensors[1])),
              UnorderedElementsAre(Pair("power_cap", 0), Pair("current", 1), Pair("sw_thermal", 1),
                                   Pair("hw_thermal", 0), Pair("other", 1)));
}

TEST_F(AmdSensorTest, AnEarlyReleaseTellsLimitsInWattsAndNothingBeyondItsShortTable) {
  const auto sensors = Find({Stub("amd_smi_stub_early"), "/nowhere"});
  for (int i = 0; i < 2; ++i) {
    const Reading reading = machine_.Read(*sensors[0]);
    EXPECT_EQ(
        ValuesOf(reading).at("gpu_power_limit{device=GPU-74a1ff74-0000-1000-80a7-000000000000}"),
        550);
    EXPECT_THAT(AbsencesOfAsked(reading),
                UnorderedElementsAre(HasSubstr("gpu unsupported gpu_throttle: "),
                                     HasSubstr("gpu unsupported gpu_nvlink_sent: "),
                                     HasSubstr("gpu unsupported gpu_nvlink_recv: ")));
    machine_.Advance(absl::Seconds(1));
  }
  EXPECT_THAT(AbsencesOfAsked(machine_.Read(*sensors[1])),
              Contains(HasSubstr("gpu unsupported gpu_throttle: ")));
}

TEST_F(AmdSensorTest, ALibraryWithoutTheCallsSaysSoAndTellsTheRest) {
  const auto sensors = Find({Stub("amd_smi_stub_bare"), "/nowhere"});
  const Reading reading = machine_.Read(*sensors[0]);
  EXPECT_EQ(ValuesOf(reading).at("gpu_util{device=GPU-74a1ff74-0000-1000-80a7-000000000000}"), 60);
  EXPECT_THAT(
      AbsencesOfAsked(reading),
      UnorderedElementsAre(
          AllOf(HasSubstr("gpu unsupported gpu_power_limit: "), HasSubstr("power_cap_info: none")),
          AllOf(HasSubstr("gpu unsupported gpu_throttle: "), HasSubstr("metrics_info: none")),
          HasSubstr("gpu unsupported gpu_nvlink_sent: "),
          HasSubstr("gpu unsupported gpu_nvlink_recv: ")));
}

TEST_F(AmdSensorTest, ACallThatFailsIsAskedAgainAtEachReading) {
  const auto sensors = Find({Stub("amd_smi_stub_failing"), "/nowhere"});
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(AbsencesOfAsked(machine_.Read(*sensors[0])),
                UnorderedElementsAre(HasSubstr("gpu failed gpu_power_limit: "),
                                     HasSubstr("gpu failed gpu_throttle: "),
                                     HasSubstr("gpu failed gpu_nvlink_sent: "),
                                     HasSubstr("gpu failed gpu_nvlink_recv: ")));
    machine_.Advance(absl::Seconds(1));
  }
  // Not ours to ask, and a table of another kind.
  const std::vector<std::string> absences = AbsencesOfAsked(machine_.Read(*sensors[1]));
  EXPECT_THAT(absences, Contains(HasSubstr("gpu no permission gpu_power_limit: ")));
  EXPECT_THAT(absences,
              Contains(AllOf(HasSubstr("gpu unsupported gpu_throttle: "), HasSubstr("format 2"))));
}

TEST_F(AmdSensorTest, WhatNobodyWantsIsNotAskedFor) {
  machine_.Select({.groups = "gpu", .without = "gpu_throttle,gpu_nvlink_sent,gpu_nvlink_recv"});
  const auto sensors = Find({Stub("amd_smi_stub_failing"), "/nowhere"});
  EXPECT_THAT(AbsencesOfAsked(machine_.Read(*sensors[0])),
              ElementsAre(HasSubstr("gpu failed gpu_power_limit: ")));
}

TEST_F(AmdSensorTest, WhatADeviceCannotDoIsToldAndHidesNothingElse) {
  const auto sensors = Find({Stub("amd_smi_stub"), "/nowhere"});
  const Reading reading = machine_.Read(*sensors[1]);
  EXPECT_EQ(ValuesOf(reading).at("gpu_util{device=GPU-74a1ff74-0000-1000-80a7-000000000001}"), 61);
  EXPECT_THAT(AbsencesOfAsked(reading),
              UnorderedElementsAre(HasSubstr("gpu unsupported gpu_memory_temperature: "),
                                   HasSubstr("gpu unsupported gpu_energy: "),
                                   HasSubstr("gpu unsupported gpu_power: "),
                                   HasSubstr("gpu unsupported gpu_power_limit: "),
                                   HasSubstr("gpu unsupported gpu_nvlink_sent: "),
                                   HasSubstr("gpu unsupported gpu_nvlink_recv: ")));
}

TEST_F(AmdSensorTest, WhatItsLibrariesAreNotAskedForIsToldOfEachDevice) {
  const auto sensors = Find({Stub("amd_smi_stub"), "/nowhere"});
  std::set<std::string> subjects;
  for (const auto& sensor : sensors) {
    // At each reading: it stands.
    for (int i = 0; i < 2; ++i) {
      const Reading reading = machine_.Read(*sensor);
      std::set<std::string> known;
      for (const SensedSample& sample : reading.samples()) known.insert(sample.series->name);
      for (const Absence& absence : reading.absences()) {
        subjects.insert(absence.subject);
        known.insert(absence.subject.substr(0, absence.subject.find(' ')));
        if (absence.reason.find("not read from") == std::string::npos) continue;
        EXPECT_EQ(absence.kind, AbsenceKind::kUnsupported);
        EXPECT_THAT(absence.reason, HasSubstr(sensor->face().name));
      }
      // Rates are there with the second reading, and so is what is counted.
      if (i == 0) known.insert({"gpu_power", "gpu_throttle", "gpu_nvlink_sent", "gpu_nvlink_recv"});
      machine_.Advance(absl::Seconds(1));
      for (const SystemMetric* metric : AllSystemMetrics()) {
        if (std::string(metric->metric_group) != "gpu") continue;
        EXPECT_EQ(known.count(metric->name), 1u) << metric->name << " is neither there nor absent";
      }
    }
  }
  for (const auto& sensor : sensors) {
    EXPECT_EQ(subjects.count("gpu_pcie_sent of " + sensor->face().name), 1u);
  }
}

TEST_F(AmdSensorTest, RocmSmiIsTheOtherWayInBothItsLayouts) {
  for (const char* stub : {"rocm_smi_stub", "rocm_smi_stub_late"}) {
    SCOPED_TRACE(stub);
    const auto sensors = Find({"/nowhere", Stub(stub)});
    ASSERT_EQ(sensors.size(), 1u);
    const std::string device = "{device=GPU-000000001234abcd}";
    const Values values = ReadTwice(*sensors[0]);
    EXPECT_NEAR(values.at("gpu_power" + device), 61, 1e-6);
    const std::pair<const char*, double> rows[] = {
        {"gpu_util", 42},        {"gpu_total_memory", 3000}, {"gpu_used_memory", 1000},
        {"gpu_temperature", 61}, {"gpu_sm_clock", 1700e6},   {"gpu_memory_clock", 900e6},
        {"gpu_power_limit", 300}};
    for (const auto& [name, value] : rows) EXPECT_EQ(values.at(name + device), value) << name;
    const bool has_table = std::string(stub) == "rocm_smi_stub_late";
    machine_.Advance(absl::Seconds(1));
    const Reading reading = machine_.Read(*sensors[0]);
    std::vector<std::string> absences = AbsencesOfAsked(reading);
    EXPECT_EQ(std::erase_if(absences,
                            [](const auto& text) {
                              return text.find("unsupported gpu_throttle: ") != std::string::npos;
                            }),
              has_table ? 0u : 1u);
    EXPECT_THAT(absences,
                UnorderedElementsAre(HasSubstr("gpu unsupported gpu_memory_util: "),
                                     HasSubstr("gpu no permission gpu_memory_temperature: "),
                                     HasSubstr("gpu unsupported gpu_nvlink_sent: "),
                                     HasSubstr("gpu unsupported gpu_nvlink_recv: ")));
    if (!has_table) continue;
    EXPECT_THAT(
        ThrottleOf(reading),
        UnorderedElementsAre(Pair("power_cap", 0), Pair("sw_thermal", 1), Pair("hw_thermal", 0)));
  }
}

TEST_F(AmdSensorTest, SilentWithoutAGpuAndToldWhereThereIsOneWithoutALibrary) {
  AmdFinder finder({"/nowhere", "/nowhere"}, machine_.kernel());
  EXPECT_THAT(finder.Find().absences, IsEmpty());
  machine_.Write("sys/bus/pci/drivers/amdgpu/module", "");
  EXPECT_THAT(finder.Find().absences, IsEmpty());
  machine_.Write("sys/bus/pci/drivers/amdgpu/0000:c1:00.0", "");
  const Findings findings = finder.Find();
  ASSERT_EQ(findings.absences.size(), 1u);
  EXPECT_EQ(findings.absences[0].kind, AbsenceKind::kUnsupported);
}

}  // namespace
}  // namespace stepwell::agent
