// The recorder's one thread beside the trial's: what it is to the trial, in a process of its own.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <thread>

#include "client/recorder/src/agent_starter.h"
#include "tests/unit/recorder/files/in_child.h"
#include "tests/unit/recorder/files/recorder_fixture.h"

namespace stepwell::recorder {
namespace {

// All but SIGKILL and SIGSTOP, which nobody can block, and the C library's own two.
constexpr char kAllBlocked[] = "fffffffe7ffbfeff";

// What each other thread of this process blocks, as the kernel says it.
std::vector<std::string> MasksOfOthers() {
  std::vector<std::string> masks;
  const std::string own = std::to_string(gettid());
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == own) continue;
    std::ifstream file(task.path() / "status");
    std::string word;
    while (file >> word && word != "SigBlk:") {
    }
    if (file >> word) masks.push_back(word);
  }
  return masks;
}

// A thread that is being made, or joined, is for an instant something else.
bool AwaitMasks(const std::vector<std::string>& masks) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (MasksOfOthers() != masks) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

std::int64_t MinorFaults() {
  struct rusage usage {};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt;
}

// Of the first ring.
struct RingRoom {
  std::uint32_t capacity;
  std::uint64_t used;
};
RingRoom RoomOf(const SpoolFiles& files) {
  const SpoolFiles::RingView view = files.ReadRing(0);
  return {view.header().capacity, view.header().head - view.header().tail};
}

TEST_F(RecorderTest, AgentRule08_ItsOneThreadTakesNoSignalAndEndsWithTheRecorder) {
  ExpectInChild([this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    Scoped("a");
    EXPECT_TRUE(AwaitMasks({kAllBlocked})) << testing::PrintToString(MasksOfOthers());
    stepwell_close(0);
    EXPECT_TRUE(AwaitMasks({})) << testing::PrintToString(MasksOfOthers());
  });
}

// fork() leaves it behind: a child that never records has none.
TEST_F(RecorderTest, AgentRule08_AForkedChildGetsItsThreadWhenItRecords) {
  ExpectInChild([this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    ASSERT_TRUE(AwaitMasks({kAllBlocked}));
    ExpectInChild([] {
      EXPECT_EQ(MasksOfOthers(), std::vector<std::string>());
      Scoped("in the child");
      EXPECT_TRUE(AwaitMasks({kAllBlocked})) << testing::PrintToString(MasksOfOthers());
    });
  });
}

// A first touch of a page in the midst of a step is a system call in all but name.
TEST_F(RecorderTest, AgentRule01_ARingIsTouchedBeforeItsThreadFillsIt) {
  std::string memory = "/dev/shm/stepwell-test-XXXXXX";
  if (mkdtemp(memory.data()) == nullptr) GTEST_SKIP() << "no shared memory here";
  ExpectInChild([&memory] {
    stepwell_options options;
    stepwell_options_init(&options);
    options.spool_dir = memory.c_str();
    ASSERT_EQ(stepwell_open(&options), STEPWELL_RECORDING);
    const stepwell_series_id series =
        stepwell_define_series("g", "n", "", STEPWELL_GAUGE, nullptr, 0);
    stepwell_record(series, 0);
    const SpoolFiles files(FindWriters(memory).at(0));
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (files.Lines().empty() && std::chrono::steady_clock::now() < deadline) {
      stepwell_record(series, 0);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const RingRoom ring = RoomOf(files);
    const std::uint64_t room = ring.capacity - ring.used;
    ASSERT_GE(room, 1000u);
    const std::uint64_t filled = room * 3 / 4;
    const auto pages = static_cast<std::int64_t>(filled * sizeof(spool::Event) / spool::kPageBytes);
    ASSERT_GE(pages, 20);
    const std::int64_t faults = MinorFaults();
    for (std::uint64_t i = 0; i < filled; ++i) stepwell_record(series, 1);
    // Some of the stack, of the program's own or of a sanitizer's shadow may be among them.
    EXPECT_LE(MinorFaults() - faults, pages / 3);
    EXPECT_EQ(stepwell_dropped_count(), 0u);
    stepwell_close(0);
  });
  std::filesystem::remove_all(memory);
}

// It starts nobody here: there is no program.
TEST_F(RecorderTest, AgentRule08_ItLooksForAnAgentFourTimesASecond) {
  using std::chrono::milliseconds;
  const auto at_ns = [](milliseconds time) {
    return static_cast<std::uint64_t>(std::chrono::nanoseconds(time).count());
  };
  AgentStarter starter({directory_.path(), {}, {}}, directory_.path());
  for (int look = 0; look < 3; ++look) {
    const milliseconds begin(1000 + 250 * look);
    EXPECT_EQ(starter.Look(at_ns(begin)), milliseconds(250));
    EXPECT_EQ(starter.Look(at_ns(begin + milliseconds(100))), milliseconds(150)) << "not yet";
  }
  EXPECT_NE(starter.trouble(), "");
}

}  // namespace
}  // namespace stepwell::recorder
