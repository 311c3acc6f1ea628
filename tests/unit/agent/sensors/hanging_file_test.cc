// A file of the kernel that hangs, for real: a pipe with a name into which nobody writes stands where
// one of a machine's files was. Somebody who laid FUSE over /proc can do the same.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "client/agent/sensors/machine_sensors.h"
#include "tests/unit/agent/sensors/machine.h"

namespace stepwell::agent {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// By the sensors' clock, on which no time passes but where one of them hangs, or the test says so:
// however busy this machine is, nobody else is late.
constexpr absl::Duration kPatience = absl::Milliseconds(5);

// A pipe in the place of a file. Who opens it hangs when he reads it, and patience with him is over
// with that, each time.
class HangingPipe {
 public:
  HangingPipe(std::filesystem::path path, FakeClock& clock)
      : path_(std::move(path)), clock_(clock) {
    std::filesystem::remove(path_);
    EXPECT_EQ(mkfifo(path_.c_str(), 0600), 0);
    // Both ends, so that nobody waits to open it, and no reader finds its end.
    ends_ = open(path_.c_str(), O_RDWR | O_CLOEXEC);
    EXPECT_GE(inotify_add_watch(watch_, path_.c_str(), IN_OPEN), 0);
    watcher_ = std::thread([this] { Watch(); });
  }
  ~HangingPipe() { LetGo(); }
  HangingPipe(const HangingPipe&) = delete;
  HangingPipe& operator=(const HangingPipe&) = delete;

  // Whoever hangs in it finds an empty file.
  void LetGo() {
    if (!watcher_.joinable()) return;
    eventfd_write(stop_, 1);
    watcher_.join();
    for (const int file : {ends_, watch_, stop_}) close(file);
  }

 private:
  void Watch() const {
    std::array<pollfd, 2> asked = {{{watch_, POLLIN, 0}, {stop_, POLLIN, 0}}};
    while (poll(asked.data(), asked.size(), -1) >= 0 && asked[1].revents == 0) {
      alignas(inotify_event) std::array<char, 4096> events;
      const ssize_t got = read(watch_, events.data(), events.size());
      for (ssize_t at = 0; at < got;) {
        clock_.Advance(kPatience);
        at += static_cast<ssize_t>(
            sizeof(inotify_event) +
            reinterpret_cast<const inotify_event*>(events.data() + at)->len);  // no name: a file
      }
    }
  }

  const std::filesystem::path path_;
  FakeClock& clock_;
  const int watch_ = inotify_init1(IN_CLOEXEC);
  const int stop_ = eventfd(0, EFD_CLOEXEC);
  int ends_ = -1;
  std::thread watcher_;
};

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
    std::filesystem::create_directories(machine_.root() / "sys/block/sda/device");
    for (int i = 0; i < 2; ++i) WriteAll();
    MachineOptions options{.root = machine_.root(), .nvml_path = "/nowhere"};
    options.amd_paths = {"/nowhere", "/nowhere"};
    options.set.round_patience = kPatience;
    set_ = MakeMachineSensors(options, clock_);
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
  Reading Read(Cadence cadence) { return set_->Read(cadence, std::make_shared<SensorSelection>()); }

  Machine machine_;
  FakeClock clock_;
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
      clock_.Advance(absl::Milliseconds(6));
      WriteAll();
    };
    Read(row.cadence);
    settle();
    const Values usual = ValuesOf(Read(row.cadence));
    ASSERT_EQ(usual.count(row.metric), 1u);
    settle();
    const std::filesystem::path path = machine_.root() / row.path;
    HangingPipe pipe(path, clock_);
    absl::Duration before = clock_.Monotonic();
    const Reading first = Read(row.cadence);
    EXPECT_EQ(clock_.Monotonic() - before, kPatience);
    EXPECT_THAT(AbsencesOf(first), ElementsAre(HasSubstr(row.absence)));
    EXPECT_EQ(ValuesOf(first).count(row.metric), 0u);
    EXPECT_EQ(first.samples().size() + static_cast<std::size_t>(first.absences()[0].sample_count),
              usual.size());
    before = clock_.Monotonic();
    for (int i = 0; i < 10; ++i) {
      EXPECT_THAT(AbsencesOf(Read(row.cadence)), ElementsAre(HasSubstr(row.absence)));
    }
    EXPECT_EQ(clock_.Monotonic(), before) << "somebody asks it again and again";
    // Who comes later finds the file that was.
    std::filesystem::rename(path, machine_.root() / "pipe");
    WriteAll();
    pipe.LetGo();
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
