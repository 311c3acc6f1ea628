#include "client/agent/sensors/nvml_sensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/places/places.h"
#include "tests/unit/agent/sensors/machine.h"
#include "tests/unit/agent/sensors/nvml_stub.h"

namespace stepwell::agent {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kBusyGpu[] = R"(
gpus 1
gpu 0 util_gpu 87
gpu 0 util_memory 43
gpu 0 memory_total 85899345920
gpu 0 memory_used 30000000000
gpu 0 memory_reserved 600000000
gpu 0 power_mw 612345
gpu 0 power_limit_mw 700000
gpu 0 energy_mj 123456789
gpu 0 temperature 71
gpu 0 memory_temperature 84
gpu 0 clock_sm_mhz 1755
gpu 0 clock_memory_mhz 2619
gpu 0 throttle 36
gpu 0 gpm_2 91.25
gpu 0 gpm_3 40.5
gpu 0 gpm_5 33.75
gpu 0 gpm_10 55.5
gpu 0 gpm_11 0
gpu 0 gpm_12 12.5
gpu 0 gpm_13 7
gpu 0 gpm_20 100
gpu 0 gpm_21 250
)";

class NvmlSensorTest : public ::testing::Test {
 protected:
  NvmlSensor Open(const std::shared_ptr<NvmlSession>& session, std::size_t index = 0) {
    return NvmlSensor(session, session->List(machine_.clock()).value().at(index));
  }
  // A second reading, so that rates are there.
  Values ReadTwice(NvmlSensor& sensor) {
    machine_.Read(sensor);
    machine_.Advance(absl::Seconds(1));
    return machine_.ReadValues(sensor);
  }
  Machine machine_;
};

TEST_F(NvmlSensorTest, EachValueComesInTheUnitOfTheTable) {
  NvmlStub stub(kBusyGpu);
  const auto session = stub.Session();
  NvmlSensor sensor = Open(session);
  const Values values = ReadTwice(sensor);
  const std::string device = "{device=GPU-stub-0}";
  const std::pair<const char*, double> rows[] = {
      {"gpu_util", 87},
      {"gpu_memory_util", 43},
      {"gpu_total_memory", 85899345920.0},
      {"gpu_used_memory", 30000000000.0},
      {"gpu_free_memory", 85899345920.0 - 30600000000.0},
      {"gpu_power", 612.345},
      {"gpu_power_limit", 700},
      {"gpu_energy", 123456.789},
      {"gpu_temperature", 71},
      {"gpu_memory_temperature", 84},
      {"gpu_sm_clock", 1755e6},
      {"gpu_memory_clock", 2619e6},
      {"gpu_sm_activity", 91.25},
      {"gpu_sm_occupancy", 40.5},
      {"gpu_tensor_activity", 33.75},
      {"gpu_dram_activity", 55.5},
      {"gpu_fp64_activity", 0},
      {"gpu_fp32_activity", 12.5},
      {"gpu_fp16_activity", 7},
      {"gpu_pcie_sent", 100 * 1048576},
      {"gpu_pcie_recv", 250 * 1048576},
  };
  for (const auto& [name, value] : rows) EXPECT_EQ(values.at(name + device), value) << name;
  // Power cap and software thermal are on, and nothing else is.
  const auto reason = [&](const char* name) {
    return values.at(std::string("gpu_throttle{device=GPU-stub-0,reason=") + name + "}");
  };
  EXPECT_EQ(reason("power_cap"), 1);
  EXPECT_EQ(reason("sw_thermal"), 1);
  for (const char* off : {"hw_slowdown", "sync_boost", "hw_thermal", "power_brake"}) {
    EXPECT_EQ(reason(off), 0) << off;
  }
}

TEST_F(NvmlSensorTest, NvlinkCountsKibibytesAndRatesRunOverTrueTime) {
  NvmlStub stub("gpus 1\ngpu 0 nvlink_tx_kib 1000\ngpu 0 nvlink_rx_kib 500\n");
  const auto session = stub.Session();
  NvmlSensor sensor = Open(session);
  machine_.Read(sensor);
  stub.Play("gpus 1\ngpu 0 nvlink_tx_kib 5000\ngpu 0 nvlink_rx_kib 1500\n");
  machine_.Advance(absl::Milliseconds(400));
  const Values values = machine_.ReadValues(sensor);
  EXPECT_EQ(values.at("gpu_nvlink_sent{device=GPU-stub-0}"), 4000 * 1024 / 0.4);
  EXPECT_EQ(values.at("gpu_nvlink_recv{device=GPU-stub-0}"), 1000 * 1024 / 0.4);
}

TEST_F(NvmlSensorTest, WithoutMonitorsPcieComesFromACounterThatIsWideOrFromTheLibrary) {
  const std::string base = "gpus 1\ngpu 0 gpm 0\ngpu 0 pcie_tx_kbs 7\ngpu 0 pcie_rx_kbs 9\n";
  NvmlStub stub(base + "gpu 0 pcie_tx_bytes 5000000000\ngpu 0 pcie_rx_bytes 100\n");
  const auto session = stub.Session();
  NvmlSensor sensor = Open(session);
  machine_.Read(sensor);
  stub.Play(base + "gpu 0 pcie_tx_bytes 6000000000\ngpu 0 pcie_rx_bytes 900\n");
  machine_.Advance(absl::Seconds(2));
  const Values values = machine_.ReadValues(sensor);
  EXPECT_EQ(values.at("gpu_pcie_sent{device=GPU-stub-0}"), 5e8);
  // Never seen above 32 bits: the library's 20 ms instead, in KB/s.
  EXPECT_EQ(values.at("gpu_pcie_recv{device=GPU-stub-0}"), 9000);
}

TEST_F(NvmlSensorTest, WhatADeviceCannotDoIsToldAndHidesNothingElse) {
  NvmlStub stub(
      "gpus 1\ngpu 0 util_gpu 5\ngpu 0 gpm 0\n"
      "gpu 0 fail nvmlDeviceGetPowerUsage 3\n"
      "gpu 0 fail nvmlDeviceGetEnforcedPowerLimit 4\n"
      "gpu 0 fail nvmlDeviceGetClockInfo 999\n"
      "gpu 0 fail field138 3\n");
  const auto session = stub.Session();
  NvmlSensor sensor = Open(session);
  const Reading reading = machine_.Read(sensor);
  EXPECT_EQ(ValuesOf(reading).at("gpu_util{device=GPU-stub-0}"), 5);
  const std::vector<std::string> absences = AbsencesOf(reading);
  EXPECT_THAT(absences, Contains("gpu unsupported gpu_power: nvmlDeviceGetPowerUsage: Not "
                                 "Supported of GPU-stub-0"));
  EXPECT_THAT(absences, Contains(HasSubstr("gpu no permission gpu_power_limit: ")));
  EXPECT_THAT(absences, Contains(HasSubstr("gpu failed gpu_sm_clock: ")));
  EXPECT_THAT(absences, Contains(HasSubstr("gpu unsupported gpu_nvlink_sent: ")));
  EXPECT_THAT(absences, Contains(HasSubstr("gpu unsupported gpu_sm_activity: ")));
  EXPECT_THAT(absences, Not(Contains(HasSubstr("gpu_nvlink_recv"))));

  // What failed is asked at each tick; what is not supported once a minute, but stays told.
  stub.Play("gpus 1\ngpu 0 gpm 0\n");
  machine_.Advance(absl::Seconds(1));
  const Reading second = machine_.Read(sensor);
  EXPECT_EQ(ValuesOf(second).count("gpu_sm_clock{device=GPU-stub-0}"), 1u);
  EXPECT_EQ(ValuesOf(second).count("gpu_power{device=GPU-stub-0}"), 0u);
  EXPECT_THAT(AbsencesOf(second), Contains(HasSubstr("gpu unsupported gpu_power: ")));
  machine_.Advance(absl::Minutes(1));
  EXPECT_EQ(machine_.ReadValues(sensor).count("gpu_power{device=GPU-stub-0}"), 1u);
}

TEST_F(NvmlSensorTest, AnOldDriverLacksCallsAndGivesWhatItHas) {
  NvmlStub stub(kBusyGpu, BuildPlace("nvml_stub/old/libnvidia-ml.so.1"));
  const auto session = stub.Session();
  NvmlSensor sensor = Open(session);
  const Reading reading = machine_.Read(sensor);
  const Values values = ValuesOf(reading);
  EXPECT_EQ(values.at("gpu_util{device=GPU-stub-0}"), 87);
  EXPECT_EQ(values.at("gpu_temperature{device=GPU-stub-0}"), 71);
  // What the driver keeps for itself counts as used there.
  EXPECT_EQ(values.at("gpu_used_memory{device=GPU-stub-0}"), 30600000000.0);
  EXPECT_EQ(values.at("gpu_throttle{device=GPU-stub-0,reason=power_cap}"), 1);
  EXPECT_THAT(AbsencesOf(reading),
              Contains(HasSubstr("gpu unsupported gpu_energy: nvmlDeviceGetTotalEnergyConsumption: "
                                 "the driver has none")));
}

TEST_F(NvmlSensorTest, ALostDeviceIsAbsentAsAWholeAndComesBackWhenTheLibrarySeesItAgain) {
  NvmlStub stub("gpus 2\ngpu 0 util_gpu 5\ngpu 1 util_gpu 6\n");
  const auto session = stub.Session();
  NvmlSensor first = Open(session, 0);
  NvmlSensor second = Open(session, 1);
  const std::size_t usual = machine_.Read(first).samples().size();
  machine_.Read(second);

  stub.Play("gpus 2\ngpu 0 fail * 15\ngpu 1 util_gpu 6\n");
  machine_.Advance(absl::Seconds(1));
  const Reading lost = machine_.Read(first);
  EXPECT_THAT(lost.samples(), IsEmpty());
  ASSERT_EQ(lost.absences().size(), 1u);
  EXPECT_EQ(lost.absences()[0].sample_count, static_cast<int>(usual));
  EXPECT_THAT(AbsencesOf(lost),
              ElementsAre("gpu failed GPU-stub-0: nvmlDeviceGetUtilizationRates: GPU is lost"));
  EXPECT_EQ(machine_.ReadValues(second).at("gpu_util{device=GPU-stub-1}"), 6);

  // Looked for while it is gone, and found again.
  EXPECT_EQ(session->List(machine_.clock()).value().size(), 1u);
  EXPECT_THAT(AbsencesOf(machine_.Read(first)),
              ElementsAre("gpu failed GPU-stub-0: the library does not see the device"));
  stub.Play("gpus 2\ngpu 0 util_gpu 9\ngpu 1 util_gpu 6\n");
  machine_.Advance(absl::Minutes(1));
  EXPECT_EQ(session->List(machine_.clock()).value().size(), 2u);
  const Reading back = machine_.Read(first);
  EXPECT_EQ(ValuesOf(back).at("gpu_util{device=GPU-stub-0}"), 9);
}

TEST_F(NvmlSensorTest, SlicesHaveMemoryAndMonitorsAndTheWholeHasNoUtilisation) {
  NvmlStub stub("gpus 1\ngpu 0 mig 2\ngpu 0 memory_total 80000\ngpu 0 gpm_2 25\n");
  const auto session = stub.Session();
  const std::vector<NvmlDeviceFace> faces = session->List(machine_.clock()).value();
  ASSERT_EQ(faces.size(), 3u);
  NvmlSensor whole(session, faces[0]);
  NvmlSensor slice(session, faces[2]);
  const std::string labels = "{device=MIG-stub-0-1,parent=GPU-stub-0}";
  const Values values = ReadTwice(slice);
  EXPECT_EQ(values.at("gpu_total_memory" + labels), 40000);
  EXPECT_EQ(values.at("gpu_sm_activity" + labels), 25);
  EXPECT_EQ(values.count("gpu_power" + labels), 0u);
  EXPECT_THAT(AbsencesOf(machine_.Read(slice)), IsEmpty());
  const Reading reading = machine_.Read(whole);
  EXPECT_EQ(ValuesOf(reading).count("gpu_power{device=GPU-stub-0}"), 1u);
  EXPECT_THAT(AbsencesOf(reading), Contains(HasSubstr("gpu unsupported gpu_util: ")));
}

TEST_F(NvmlSensorTest, ASliceWhoseGpuIsNotSeenTellsThatItsMonitorsAreAbsent) {
  NvmlStub stub("gpus 1\ngpu 0 mig 2\ngpu 0 memory_total 80000\n");
  const auto session = stub.Session();
  NvmlDeviceFace face = session->List(machine_.clock()).value().at(2);
  face.parent_uuid = "GPU-elsewhere";
  NvmlSensor slice(session, face);
  const Reading reading = machine_.Read(slice);
  EXPECT_EQ(reading.samples().size(), 3u) << "its memory";
  EXPECT_THAT(AbsencesOf(reading),
              AllOf(SizeIs(7), Each(AllOf(HasSubstr("gpu failed gpu_"),
                                          HasSubstr("does not see the GPU of the slice")))));
}

TEST_F(NvmlSensorTest, MetricsThatAreSwitchedOffAreNotAskedFor) {
  NvmlStub stub("gpus 1\ngpu 0 fail nvmlDeviceGetPowerUsage 15\n");
  const auto session = stub.Session();
  NvmlSensor sensor = Open(session);
  machine_.Select({.groups = "gpu", .without = "gpu_power,gpu_sm_clock"});
  const Values values = machine_.ReadValues(sensor);
  EXPECT_EQ(values.count("gpu_util{device=GPU-stub-0}"), 1u);
  EXPECT_EQ(values.count("gpu_sm_clock{device=GPU-stub-0}"), 0u);
}

}  // namespace
}  // namespace stepwell::agent
