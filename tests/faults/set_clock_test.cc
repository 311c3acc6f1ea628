// The wall clock is set, hours back, a year forward, to 1970 and to 2262, while a master, its PostgreSQL, an agent and
// trainers run; and all of them are suspended, as with their machine. Their clocks are those of set_clock.cc.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"
#include "tests/faults/set_clocks.h"

namespace stepwell::faults {
namespace {

// What waits in rings when the clock is set is stamped as if it had been recorded afterwards.
constexpr absl::Duration kReadPatience = absl::Seconds(2);
// 20 chunks are made in a second; nobody waits for longer than two because a clock was set, and a busy machine has its share.
constexpr absl::Duration kSoon = absl::Seconds(4);
// An agent takes its anchor each 10 s.
constexpr absl::Duration kAnchorPatience = absl::Seconds(12);

// And when they stood, by themselves.
class Clocks {
 public:
  explicit Clocks(const Scene& scene) : set_(scene) {}

  void SetWall(absl::Duration offset) {
    settled_.push_back(
        {absl::Now() + offset + kAnchorPatience, absl::Now() + offset + absl::Minutes(30)});
    if (settled_.size() > 1) {
      settled_[settled_.size() - 2].second = absl::Now() + set_.wall() - kReadPatience;
    }
    set_.SetWall(offset);
  }
  void Suspended(absl::Duration length) {
    SetWall(set_.wall() + length);
    set_.AddBoot(length);
  }

  // Whether the clock had stood long enough for times that are right.
  bool IsSettled(absl::Time wall) const {
    for (const auto& [begin, end] : settled_) {
      if (wall >= begin && wall < end) return true;
    }
    return false;
  }

 private:
  SetClocks set_;
  std::vector<std::pair<absl::Time, absl::Time>> settled_;
};

std::vector<pid_t> StopWithChildren(pid_t parent);

// All that it started, and they: parents first, so that they start nobody meanwhile.
std::vector<pid_t> StopChildren(pid_t parent) {
  std::ifstream file(absl::StrCat("/proc/", parent, "/task/", parent, "/children"));
  std::vector<pid_t> stopped;
  for (pid_t child = 0; file >> child;) {
    const std::vector<pid_t> of_child = StopWithChildren(child);
    stopped.insert(stopped.end(), of_child.begin(), of_child.end());
  }
  return stopped;
}

std::vector<pid_t> StopWithChildren(pid_t parent) {
  std::vector<pid_t> stopped;
  if (parent <= 0 || kill(parent, SIGSTOP) != 0) return stopped;
  stopped.push_back(parent);
  const std::vector<pid_t> children = StopChildren(parent);
  stopped.insert(stopped.end(), children.begin(), children.end());
  return stopped;
}

class SetClockTest : public ::testing::Test {
 protected:
  void Start() {
    ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail();
    scene_.StartAgent(master_.grpc_address());
    for (const int rank : {0, 1}) {
      scene_.StartTrainer(rank, {{"--world-size", "2"}, {"--rate", "20"}});
    }
    scene_.StartRawWriter(10, master_.grpc_address());
    AwaitCommits("begin");
  }

  void AwaitCommits(const std::string& what) {
    const std::uint64_t before = Committed();
    ASSERT_TRUE(scene_.Await(absl::StrCat(what, ": 20 chunks"), absl::Seconds(60),
                             [&] { return Committed() >= before + 20; }))
        << scene_.Logs() << master_.LogTail();
  }
  void GoesOn(const std::string& what) {
    const absl::Duration begin = scene_.Elapsed();
    ASSERT_NO_FATAL_FAILURE(AwaitCommits(what));
    EXPECT_LE(scene_.Elapsed() - begin, kSoon) << what;
  }

  void AwaitAnchor() {
    const absl::Duration end = scene_.Elapsed() + kAnchorPatience + absl::Seconds(2);
    scene_.Await("anchors are taken", absl::Minutes(1), [&] { return scene_.Elapsed() >= end; });
  }

  void ExpectExactWithTheirTimes() {
    scene_.StopProducers(absl::Seconds(60));
    const Verdict verdict = scene_.ExpectExact(master_, Demand::kRecorded);
    EXPECT_EQ(verdict.declared_count, 0U);
    for (const StoredGap& gap : scene_.stored().gaps) {
      EXPECT_EQ(gap.cause, Cause::kClock);
      EXPECT_EQ(gap.sample_count, 0);
    }
    std::map<std::tuple<std::string, int, std::int32_t>, std::int64_t> stored;
    for (const StoredSample& sample : scene_.stored().samples) {
      stored[{sample.series, sample.rank, sample.batch}] = sample.time_us;
    }
    int settled_count = 0;
    absl::Duration worst;
    for (const LoggedSample& logged : scene_.ReadLedgers().samples) {
      if (logged.time_is_exact || logged.batch < 0) continue;
      const absl::Time wall = absl::FromUnixMicros(logged.time_us);
      if (!clocks_.IsSettled(wall)) continue;
      ++settled_count;
      const absl::Time there =
          absl::FromUnixMicros(stored[{logged.series, logged.rank, logged.batch}]);
      worst = std::max(worst, absl::AbsDuration(there - wall));
    }
    scene_.Say(
        absl::StrCat(settled_count, " times, the worst off by ", absl::FormatDuration(worst)));
    EXPECT_GT(settled_count, 20);
    EXPECT_LT(worst, absl::Seconds(2));
    EXPECT_EQ(master_.Stop(), "exit 0") << master_.LogTail();
  }

  std::uint64_t Committed() {
    const auto status = client_.Status();
    return status ? status->chunks_committed() : 0;
  }

  Scene scene_{"set clock"};
  Clocks clocks_{scene_};
  MasterProcess master_{{.scratch = scene_.path("")}};
  MasterClient client_{master_.grpc_address()};
};

TEST_F(SetClockTest, LongAllGoOnWhereverItIsSet) {
  if (!SetClocks::kIsPossible) GTEST_SKIP() << "nothing is preloaded before a sanitizer";
  ASSERT_NO_FATAL_FAILURE(Start());
  const absl::Duration now = absl::Now() - absl::UnixEpoch();
  constexpr absl::Duration kDay = absl::Hours(24);
  for (const auto& [name, offset] : std::vector<std::pair<std::string, absl::Duration>>{
           {"an hour back", -absl::Hours(1)},
           {"a year forward", 365 * kDay},
           {"1970", 30 * kDay - now},
           {"2262", absl::FromUnixSeconds(9'214'560'000) - absl::UnixEpoch() - now},
           {"as it is", absl::ZeroDuration()}}) {
    clocks_.SetWall(offset);
    ASSERT_NO_FATAL_FAILURE(GoesOn(name));
    AwaitAnchor();
  }
  ExpectExactWithTheirTimes();
}

// Waits that are over as they begin know that they are, whichever clock has not heard of it yet.
TEST_F(SetClockTest, CommitsWaitForNoClockThatIsSetForward) {
  if (!SetClocks::kIsPossible) GTEST_SKIP() << "nothing is preloaded before a sanitizer";
  ASSERT_NO_FATAL_FAILURE(Start());
  for (int i = 1; i <= 8; ++i) {
    clocks_.SetWall(i * absl::Minutes(10));
    ASSERT_NO_FATAL_FAILURE(GoesOn(absl::StrCat(10 * i, " minutes ahead")));
  }
  scene_.StopProducers(absl::Seconds(60));
  EXPECT_EQ(scene_.ExpectExact(master_, Demand::kRecorded).declared_count, 0U);
  EXPECT_EQ(master_.Stop(), "exit 0") << master_.LogTail();
}

TEST_F(SetClockTest, AllGoOnAfterTheMachineWasSuspended) {
  if (!SetClocks::kIsPossible) GTEST_SKIP() << "nothing is preloaded before a sanitizer";
  ASSERT_NO_FATAL_FAILURE(Start());
  for (const absl::Duration length : {absl::Minutes(10), absl::Hours(8)}) {
    std::vector<pid_t> stopped = StopChildren(getpid());
    const std::vector<pid_t> database = StopWithChildren(master_.PostmasterPid());
    stopped.insert(stopped.end(), database.begin(), database.end());
    scene_.Say(absl::StrCat(stopped.size(), " processes stand still"));
    ASSERT_GT(stopped.size(), 8U);
    clocks_.Suspended(length);
    for (const pid_t pid : stopped) kill(pid, SIGCONT);
    ASSERT_NO_FATAL_FAILURE(GoesOn(absl::FormatDuration(length)));
    AwaitAnchor();
  }
  ExpectExactWithTheirTimes();
}

}  // namespace
}  // namespace stepwell::faults
