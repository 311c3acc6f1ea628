// Rule 17: whatever happens to what is ours, a training step waits for nothing. Not by a clock, which
// tells on a busy machine of its neighbours, but by the kernel: the thread that trains may sleep until
// its next step and write to its own ledger, and any other system call in a step (a lock that is waited
// for, a file, a socket, memory) would end the process (--held, tests/faults/programs/held_thread.h).
// What was lost is counted, and told where there is somebody to be told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "absl/strings/str_cat.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"
#include "tests/faults/small_disk.h"
#include "tests/faults/small_memory.h"
#include "tests/faults/useless_server.h"

namespace stepwell::faults {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr std::int64_t kSteps = 1000;
// Where nothing may be lost the first ring of 256 KiB lasts 8 s, not 0.8 s: who makes the next one may
// have to wait for a processor.
constexpr std::int64_t kCalmSteps = 200;
constexpr char kCalmRate[] = "100";
// More than the rings hold that find room on a disk of 4 MiB: 256 KiB and 1 MiB of 32 bytes an event.
constexpr std::int64_t kManySteps = 10'000;
// A step's lines in the ledger have more than that.
constexpr std::int64_t kLineBytesMin = 300;

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class NeverHarmTest : public ::testing::Test {
 protected:
  using Options = std::map<std::string, std::string>;

  // The one producer of a test.
  void StartHeld(Options options = {}) {
    options.insert({{"--held", "1"}, {"--rate", "1000"}});
    trainer_ = &scene_.StartTrainer(0, options);
  }
  void StartCalm(Options options = {}) {
    options.insert({"--rate", kCalmRate});
    StartHeld(options);
    steps_ = kCalmSteps;
  }
  // The steps go on while `what` lasts.
  void ExpectSteps(const std::string& what) { ExpectSteps(what, steps_); }
  void ExpectSteps(const std::string& what, std::int64_t steps) {
    const std::int64_t before = ledger_bytes();
    EXPECT_TRUE(scene_.Await(what + ", steps went on", absl::Seconds(120), [&] {
      return ledger_bytes() >= before + steps * kLineBytesMin || !trainer_->running();
    })) << scene_.Logs();
    EXPECT_TRUE(trainer_->running()) << trainer_->Wait(absl::ZeroDuration()) << scene_.Logs();
  }
  // It ends as it would have without us: in order, at its own time.
  void ExpectEnd(const std::string& ending) {
    trainer_->Signal(SIGTERM);
    EXPECT_EQ(trainer_->Wait(absl::Seconds(120)), ending) << scene_.Logs();
    EXPECT_THAT(Said(), HasSubstr(": held, "));
  }
  // What the trainer and the agent's children print.
  std::string Said() const { return ReadText(scene_.path("producers.log")); }
  std::uint64_t dropped() const { return scene_.ReadLedgers().dropped_count; }

  void StartMaster() { ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail(); }
  // All that was recorded is stored or, no more than recorders dropped, declared.
  void ExpectStored() {
    ExpectEnd("exit 0");
    (void)scene_.ExpectExact(master_, Demand::kRecorded, scene_.DropsOfRecorders());
    EXPECT_EQ(master_.Stop(), "exit 0") << master_.LogTail();
  }

  Scene scene_{::testing::UnitTest::GetInstance()->current_test_info()->name()};
  MasterProcess master_{{.scratch = scene_.path("")}};
  ChildProcess* trainer_ = nullptr;

 private:
  std::int64_t steps_ = kSteps;

  std::int64_t ledger_bytes() const {
    struct stat about {};
    return stat(scene_.path("ledger-0").c_str(), &about) == 0 ? about.st_size : 0;
  }
};

// The test of the tests: a thread that is held cannot do what a recorder must not.
TEST_F(NeverHarmTest, AHeldThreadThatAsksTheKernelIsEnded) {
  Scene::StartsNobody();
  StartHeld({{"--ask-at", "100"}});
  EXPECT_EQ(trainer_->Wait(absl::Seconds(60)), "exit 90");
  EXPECT_THAT(Said(), HasSubstr("trainer: system call 039 in a step\n"));  // getpid
}

TEST_F(NeverHarmTest, AgentRule17_NoStepWaitsForAMasterThatHangsDiesOrIsSlow) {
  StartMaster();
  scene_.StartAgent(master_.grpc_address());
  StartCalm();
  ExpectSteps("a master");
  master_.Pause();
  ExpectSteps("it hangs");
  master_.Continue();
  master_.Kill();
  ExpectSteps("it is dead");
  StartMaster();
  for (int i = 0; i < 3; ++i) {
    master_.Pause();
    ExpectSteps("it hangs again and again");
    master_.Continue();
  }
  ExpectStored();
  EXPECT_EQ(dropped(), 0U);
}

// Of who was never there nothing is stored; nothing is lost either: the spool has it.
TEST_F(NeverHarmTest, AgentRule17_NoStepWaitsForAPortWithoutAMaster) {
  scene_.StartAgent(master_.grpc_address());
  StartCalm({{"--close-wait-ms", "0"}});
  ExpectSteps("nobody listens");
  ExpectEnd("exit 3");
  EXPECT_EQ(dropped(), 0U);
}

TEST_F(NeverHarmTest, AgentRule17_NoStepWaitsForANetworkThatSwallowsAll) {
  UselessServer hole(UselessServer::Kind::kSwallows);
  scene_.StartAgent(hole.address());
  StartCalm({{"--close-wait-ms", "0"}});
  ExpectSteps("packets are swallowed");
  ExpectEnd("exit 3");
  EXPECT_EQ(dropped(), 0U);
}

TEST_F(NeverHarmTest, AgentRule17_NoStepWaitsForAMasterThatTalksNonsense) {
  UselessServer liar(UselessServer::Kind::kTalksNonsense);
  scene_.StartAgent(liar.address());
  StartCalm({{"--close-wait-ms", "0"}});
  EXPECT_TRUE(scene_.Await("nonsense was told", absl::Seconds(120),
                           [&] { return liar.connection_count() > 1; }));
  ExpectSteps("answers are nonsense");
  ExpectEnd("exit 3");
  EXPECT_EQ(dropped(), 0U);
}

TEST_F(NeverHarmTest, AgentRule17_NoStepWaitsForAnAgentThatIsKilledOrStops) {
  const std::string spool = scene_.path("small");
  if (const std::string why = MountSmallDisk(spool, "4m"); !why.empty()) GTEST_SKIP() << why;
  scene_.set_spool_dir(spool);
  StartMaster();
  StartHeld({{"--scopes", "0"}, {"--rate", "4000"}});
  ExpectSteps("no agent yet");
  for (int i = 0; i < 3; ++i) {
    scene_.StartAgent(master_.grpc_address());
    ExpectSteps("an agent");
    scene_.agent().Kill();
    ExpectSteps("it is killed");
  }
  scene_.StartAgent(master_.grpc_address());
  scene_.agent().Signal(SIGSTOP);
  ExpectSteps("it is stopped, the rings are full", kManySteps);
  scene_.agent().Signal(SIGCONT);
  ExpectStored();
  EXPECT_GT(dropped(), 0U);
}

TEST_F(NeverHarmTest, AgentRule17_NoStepWaitsBesideForksExecsAndSignals) {
  StartMaster();
  scene_.StartAgent(master_.grpc_address());
  StartCalm({{"--disturb", "7"}, {"--workers", "2"}, {"--worker-samples", "200"}});
  ExpectSteps("forks, execs and signals");
  ExpectStored();
  EXPECT_EQ(dropped(), 0U);
  EXPECT_THAT(Said(), ::testing::ContainsRegex(
                          "held, forks [1-9][0-9]*, execs [1-9][0-9]*, signals [1-9][0-9]*, "
                          "descriptors 0, failed 0\n"));
}

TEST_F(NeverHarmTest, AgentRule17_NoStepWaitsForDescriptorsThatAreUsedUp) {
  StartMaster();
  scene_.StartAgent(master_.grpc_address());
  StartHeld({{"--disturb", "8"}});
  ExpectSteps("no descriptor is left");
  ExpectStored();
  EXPECT_THAT(Said(), ::testing::ContainsRegex("descriptors [1-9][0-9]*, failed 0\n"));
}

TEST_F(NeverHarmTest, AgentRule17_NoStepWaitsForADiskThatIsFull) {
  const std::string spool = scene_.path("small");
  if (const std::string why = MountSmallDisk(spool, "4m"); !why.empty()) GTEST_SKIP() << why;
  scene_.set_spool_dir(spool);
  // Nobody takes anything: all must go to the disk.
  scene_.StartAgent(master_.grpc_address());
  StartHeld({{"--close-wait-ms", "0"}});
  ExpectSteps("there is room");
  FillUp(spool + "/filler");
  ExpectSteps("the disk is full", 4 * kSteps);
  ExpectEnd("exit 3");
  EXPECT_GT(dropped(), 0U);
}

TEST_F(NeverHarmTest, AgentRule17_NoStepWaitsForASpoolThatIsDeletedOrReplaced) {
  const std::string spool = scene_.path("gone");
  ASSERT_EQ(mkdir(spool.c_str(), 0700), 0);
  scene_.set_spool_dir(spool);
  scene_.StartAgent(master_.grpc_address());
  StartHeld({{"--close-wait-ms", "0"}});
  ExpectSteps("a spool");
  // Agent and recorder make files there meanwhile.
  ASSERT_TRUE(scene_.Await("no spool", absl::Seconds(60), [&] {
    std::error_code again;
    fs::remove_all(spool, again);
    return fs::symlink_status(spool, again).type() == fs::file_type::not_found;
  }));
  ExpectSteps("it is deleted");
  const std::string elsewhere = scene_.path("elsewhere");
  ASSERT_EQ(mkdir(elsewhere.c_str(), 0700), 0);
  ASSERT_TRUE(scene_.Await("a link", absl::Seconds(60), [&] {
    std::error_code again;
    fs::remove_all(spool, again);
    fs::create_directory_symlink(elsewhere, spool, again);
    return !again;
  }));
  ExpectSteps("it is a link to elsewhere");
  ExpectEnd("exit 3");
  std::error_code error;
  EXPECT_TRUE(fs::is_empty(elsewhere, error)) << error.message();
}

TEST_F(NeverHarmTest, AgentRule17_NoStepWaitsForASpoolThatCannotBeMade) {
  Scene::StartsNobody();
  const std::string spool = scene_.path("file");
  std::ofstream(spool) << "no directory";
  StartHeld({{"--spool-dir", spool}, {"--close-wait-ms", "0"}});
  ExpectSteps("no spool", 4 * kSteps);
  ExpectEnd("exit 4");
  EXPECT_THAT(Said(), HasSubstr("trainer: does not record: "));
}

// The names fit, no ring does.
TEST_F(NeverHarmTest, AgentRule17_NoStepWaitsForRingsThatFindNoRoom) {
  Scene::StartsNobody();
  const std::string spool = scene_.path("small");
  if (const std::string why = MountSmallDisk(spool, "640k"); !why.empty()) GTEST_SKIP() << why;
  scene_.set_spool_dir(spool);
  StartHeld({{"--close-wait-ms", "0"}});
  ExpectSteps("no room for a ring", 4 * kSteps);
  ExpectEnd("exit 3");
  EXPECT_GT(dropped(), 0U);
}

// Rings count to a cgroup's memory, as does the ledger here, of 3 MB in the end; beyond the limit the kernel
// answers posix_fallocate with its killer. The second ring, of 1 MiB, has not four times its room.
TEST_F(NeverHarmTest, AgentRule17_NoStepWaitsForMemoryThatACgroupDoesNotHave) {
  SmallMemory memory("rings", 4 << 20);
  if (!memory.trouble().empty()) GTEST_SKIP() << memory.trouble();
  StartMaster();
  StartHeld({{"--scopes", "0"}, {"--rate", "4000"}});
  ASSERT_TRUE(memory.Take(trainer_->pid()));
  ExpectSteps("no agent yet, the ring is full", 6 * kSteps);
  EXPECT_EQ(memory.kill_count(), 0);
  scene_.StartAgent(master_.grpc_address());
  ExpectSteps("an agent");
  ExpectStored();
  EXPECT_GT(dropped(), 0U);
}

}  // namespace
}  // namespace stepwell::faults
