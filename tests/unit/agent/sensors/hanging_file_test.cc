// A file of the kernel that hangs, for real: a pipe with a name that nobody writes to stands where
// one of a machine's files was. Somebody who laid FUSE over /proc can do the same.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/agent/sensors/machine_sensors.h"
#include "tests/unit/agent/sensors/machine.h"

namespace stepwell::agent {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::Duration kPatience = absl::Milliseconds(400);

struct Row {
  std::string path;
  Cadence cadence;
  // What is absent while it hangs, and that it begins with.
  std::string metric;
  std::string absence;
};

class HangingFileTest : public ::testing::Test {
 protected:
  HangingFileTest() {
    std::filesystem::create_directories(machine_.root() / "sys/block/sda");
    for (int i = 0; i < 2; ++i) WriteAll();
    MachineOptions options{.root = machine_.root(), .nvml_path = "/nowhere"};
    options.amd_paths = {"/nowhere", "/nowhere"};
    options.set.round_patience = kPatience;
    set_ = MakeMachineSensors(options, RealClock::Get());
  }
  // Counters that move on.
  void WriteAll() {
    ++count_;
    const auto text = [this](const char* before) { return before + std::to_string(count_); };
    machine_.Write("proc/stat",
                   text("cpu  ") + " 0 1 " + std::to_string(2 * count_) + " 0 0 0 0\n");
    machine_.Write("proc/loadavg", "0.50 1.25 2.00 3/567 8910\n");
    machine_.Write("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 900 kB\n");
    machine_.Write("proc/diskstats", text("   8 0 sda 10 0 ") + " 0 20 0 200 0 0 0 0\n");
    machine_.Write("proc/net/dev", text("  eth0: ") + " 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0\n");
    machine_.Write("proc/self/mountinfo", "27 1 254:0 / / rw - ext4 /dev/vda rw\n");
    machine_.Write("proc/self/cgroup", "0::/a\n");
    for (const char* of : {"cpu", "memory", "io"}) {
      machine_.Write(std::string("proc/pressure/") + of, text("some total=") + "\nfull total=4\n");
    }
  }
  void Hang(const std::string& path) {
    machine_.Remove(path);
    ASSERT_EQ(mkfifo((machine_.root() / path).c_str(), 0600), 0);
  }
  // Whoever hangs in it gets an empty file; who comes later, the one that was.
  void LetGo(const std::string& path) {
    const std::filesystem::path aside = machine_.root() / "pipe";
    std::filesystem::rename(machine_.root() / path, aside);
    WriteAll();
    const int pipe = open(aside.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    ASSERT_GE(pipe, 0) << "nobody hangs in it";
    close(pipe);
  }
  Reading Read(Cadence cadence) { return set_->Read(cadence, std::make_shared<SensorSelection>()); }

  Machine machine_;
  int count_ = 0;
  std::unique_ptr<SensorSet> set_;
};

TEST_F(HangingFileTest, AgentRule16_HidesNothingElseIsNamedAndComesBack) {
  const Row rows[] = {
      {"proc/stat", Cadence::kFast, "cpu_util_simple", "cpu failed cpu: no answer for "},
      {"proc/meminfo", Cadence::kFast, "memory_free", "memory failed memory: no answer for "},
      {"proc/diskstats", Cadence::kFast, "disk_iops", "disk failed disk: no answer for "},
      {"proc/net/dev", Cadence::kFast, "net_throughput_recv", "network failed network: no answer"},
      {"proc/pressure/io", Cadence::kFast, "disk_pressure_some",
       "disk failed disk_pressure: no an"},
      {"proc/loadavg", Cadence{5'000}, "cpu_load_1m", "cpu failed load: no answer for "},
      {"proc/self/mountinfo", Cadence::kSlow, "disk_util{mount=/}",
       "disk failed mounts: no answer"},
  };
  for (const Cadence cadence : set_->cadences()) Read(cadence);
  for (const Row& row : rows) {
    SCOPED_TRACE(row.path);
    // Rates need 5 ms between two readings, and a counter that moved.
    const auto settle = [&] {
      absl::SleepFor(absl::Milliseconds(6));
      WriteAll();
    };
    Read(row.cadence);
    settle();
    const Values usual = ValuesOf(Read(row.cadence));
    ASSERT_EQ(usual.count(row.metric), 1u);
    settle();
    Hang(row.path);
    absl::Time before = absl::Now();
    const Reading first = Read(row.cadence);
    EXPECT_LT(absl::Now() - before, 2 * kPatience + absl::Seconds(1));
    EXPECT_THAT(AbsencesOf(first), ElementsAre(HasSubstr(row.absence)));
    EXPECT_EQ(ValuesOf(first).count(row.metric), 0u);
    EXPECT_EQ(first.samples().size() + static_cast<std::size_t>(first.absences()[0].sample_count),
              usual.size());
    before = absl::Now();
    for (int i = 0; i < 10; ++i) {
      EXPECT_THAT(AbsencesOf(Read(row.cadence)), ElementsAre(HasSubstr(row.absence)));
    }
    EXPECT_LT(absl::Now() - before, 10 * kPatience) << "somebody waits for it again and again";
    LetGo(row.path);
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    bool back = false;
    while (!back && absl::Now() < deadline) {
      settle();
      const Reading reading = Read(row.cadence);
      back = reading.absences().empty() && ValuesOf(reading).count(row.metric) == 1;
    }
    EXPECT_TRUE(back);
  }
}

}  // namespace
}  // namespace stepwell::agent
