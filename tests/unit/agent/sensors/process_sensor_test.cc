#include "client/agent/sensors/process_sensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/unit/agent/sensors/machine.h"

namespace stepwell::agent {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

std::string Stat(int user_ticks, int system_ticks, int threads, int started_at) {
  return "42 (python (train) x) S 1 42 42 0 -1 4194560 5 6 7 8 " + std::to_string(user_ticks) +
         " " + std::to_string(system_ticks) + " 0 0 20 0 " + std::to_string(threads) + " 0 " +
         std::to_string(started_at) + " 123456 789 18446744073709551615 1 1\n";
}

class ProcessSensorTest : public ::testing::Test {
 protected:
  void Write(int user_ticks, int system_ticks, int started_at, int read_bytes) {
    machine_.Write("proc/42/stat", Stat(user_ticks, system_ticks, 17, started_at));
    machine_.Write("proc/42/statm", "5000 1000 200 1 0 800 0\n");
    machine_.Write("proc/42/io", "rchar: 9\nwchar: 9\nread_bytes: " + std::to_string(read_bytes) +
                                     "\nwrite_bytes: 4096\ncancelled_write_bytes: 0\n");
  }
  Machine machine_;
  ProcessSensor sensor_{42, machine_.kernel()};
  const double page_ = static_cast<double>(sysconf(_SC_PAGESIZE));
  const int ticks_ = static_cast<int>(sysconf(_SC_CLK_TCK));
};

TEST_F(ProcessSensorTest, ReadsItsOwnTimesMemoryThreadsAndFiles) {
  Write(ticks_, ticks_, 1000, 8192);
  EXPECT_THAT(machine_.ReadValues(sensor_),
              UnorderedElementsAre(Pair("cpu_process_threads", 17),
                                   Pair("memory_process_resident", 1000 * page_)));
  machine_.Advance(absl::Seconds(2));
  Write(4 * ticks_, 2 * ticks_, 1000, 16384);
  // Four seconds of processor time in two.
  EXPECT_THAT(machine_.ReadValues(sensor_),
              UnorderedElementsAre(Pair("cpu_process_threads", 17), Pair("cpu_util_process", 200),
                                   Pair("memory_process_resident", 1000 * page_),
                                   Pair("disk_process_read", 4096), Pair("disk_process_write", 0)));
}

TEST_F(ProcessSensorTest, ANumberThatIsGivenAgainIsAnotherProcess) {
  Write(ticks_, ticks_, 1000, 0);
  machine_.Read(sensor_);
  machine_.Advance(absl::Seconds(1));
  Write(50 * ticks_, 0, 2000, 0);
  EXPECT_EQ(machine_.ReadValues(sensor_).count("cpu_util_process"), 0u);
}

TEST_F(ProcessSensorTest, AProcessThatIsGoneIsAnEndAndABadFileIsNot) {
  EXPECT_THAT(machine_.Read(sensor_).samples(), IsEmpty());
  EXPECT_THAT(AbsencesOf(machine_.Read(sensor_)), IsEmpty());
  Write(1, 1, 1, 0);
  machine_.Write("proc/42/stat", "42 (x) S 1 2\n");
  EXPECT_THAT(AbsencesOf(machine_.Read(sensor_)),
              Contains(HasSubstr("cpu failed process: /proc/42/stat: too short")));
}

TEST_F(ProcessSensorTest, ReadsThisProcess) {
  ProcessSensor own(getpid(), KernelText("/"));
  const Values values = machine_.ReadValues(own);
  EXPECT_GE(values.at("cpu_process_threads"), 1);
  EXPECT_GT(values.at("memory_process_resident"), 1 << 20);
}

}  // namespace
}  // namespace stepwell::agent
