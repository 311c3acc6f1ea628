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
#include <regex>

#include "absl/strings/str_cat.h"
#include "tests/faults/breakable_disk.h"
#include "tests/faults/lying_master.h"
#include "tests/faults/master_client.h"
#include "tests/faults/network/chaos_proxy.h"
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
// Of the ledger's file, whose lock another may hold; of 100 steps and more.
constexpr std::int64_t kWaitsMax = 20;
constexpr std::int64_t kLatePages = 2 * kWaitsMax;
// A fork holds all memory while it is copied, and whoever touches a page waits for that.
constexpr std::int64_t kWaitsBesideForksMax = 2000;
// Of a pipe's lock, which who reads it may hold.
constexpr std::int64_t kWaitsBesideReader = 200;
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
  // A step was made, or it has ended.
  void AwaitBegin() {
    EXPECT_TRUE(scene_.Await("it begins", absl::Seconds(20), [&] {
      return ledger_bytes() > 0 || !trainer_->running();
    })) << scene_.Logs();
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
    ExpectNoWaits();
  }
  // Nor for what is waited for without a system call, as a page is.
  void ExpectNoWaits() const { EXPECT_LE(CountWaits(), waits_max_); }
  // 0 where that is not known, too.
  std::int64_t CountWaits() const {
    const std::string said = Said();
    const std::regex line("rank 0: (-?\\d+) switches, (\\d+) sleeps\n");
    std::smatch found;
    EXPECT_TRUE(std::regex_search(said, found, line)) << said;
    // Who has no descriptor left cannot ask, and has 0 less what it knew as it began.
    if (found.empty() || std::stoll(found[1]) <= 0) return 0;
    const std::int64_t waits = std::stoll(found[1]) - std::stoll(found[2]);
    scene_.Say(absl::StrCat("it slept ", found[2].str(), " times and waited ", waits, " times"));
    return waits;
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
  std::int64_t waits_max_ = kWaitsMax;

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

// Nor can it wait for a page unseen, of which the kernel is not asked.
TEST_F(NeverHarmTest, AHeldThreadThatWaitsInAPagesFaultIsSeen) {
  Scene::StartsNobody();
  StartHeld({{"--late-pages", absl::StrCat(kLatePages)}, {"--close-wait-ms", "0"}});
  ASSERT_TRUE(scene_.Await("a step", absl::Seconds(20), [&] {
    return !scene_.ReadLedgers().samples.empty() || !trainer_->running();
  })) << scene_.Logs();
  if (trainer_->Wait(absl::ZeroDuration()) == "exit 77") GTEST_SKIP() << "no userfaultfd";
  ExpectSteps("pages come late");
  trainer_->Signal(SIGTERM);
  EXPECT_EQ(trainer_->Wait(absl::Seconds(60)), "exit 3") << scene_.Logs();
  EXPECT_GT(CountWaits(), kWaitsMax);
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

// Each answer is a second late and more, and each acks less than was recorded meanwhile.
TEST_F(NeverHarmTest, AgentRule17_NoStepWaitsForAMasterThatIsSlow) {
  StartMaster();
  ChaosProxy proxy(master_.grpc_address(), scene_.random()());
  proxy.Set("delay=1s jitter=500ms");
  scene_.StartAgent(proxy.address());
  StartCalm();
  ExpectSteps("answers are late");
  MasterClient client(master_.grpc_address());
  EXPECT_TRUE(scene_.Await("some is stored", absl::Seconds(60), [&] {
    const auto status = client.Status();
    return status && status->samples_committed() > 0;
  })) << scene_.Logs();
  ExpectSteps("they go on being late");
  EXPECT_LE(proxy.counts().accepted, 2U) << "slowness is no reason to leave: " << scene_.Logs();
  proxy.Set("");
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

// What it says is well formed, and nothing of it is true. An agent that believed it would free what nobody holds.
TEST_F(NeverHarmTest, AgentRule17_NoStepWaitsForAMasterThatAcksWhatItWasNotSent) {
  LyingMaster liar;
  scene_.StartAgent(liar.address());
  StartCalm();
  EXPECT_TRUE(scene_.Await("lies were told on two streams", absl::Seconds(60), [&] {
    return liar.lie_count() > 1;
  })) << scene_.Logs();
  ExpectSteps("acks are lies");
  EXPECT_THAT(scene_.Logs(), HasSubstr("ack_of_unsent"));
  scene_.agent().Kill();
  StartMaster();
  scene_.StartAgent(master_.grpc_address());
  ExpectStored();
  EXPECT_EQ(dropped(), 0U);
}

TEST_F(NeverHarmTest, AgentRule17_NoStepWaitsForAMasterThatRefuses) {
  StartMaster();
  scene_.StartAgent(master_.grpc_address());
  StartCalm();
  ExpectSteps("a master");
  MasterClient client(master_.grpc_address());
  EXPECT_TRUE(
      Eventually([&] { return client.SetArchived("faults", true).empty(); }, absl::Seconds(20)));
  EXPECT_TRUE(scene_.Await("it refuses", absl::Seconds(60), [&] {
    return ReadText(scene_.path("agent.log")).find("TRIAL_ARCHIVED") != std::string::npos;
  })) << scene_.Logs();
  ExpectSteps("it refuses the trial");
  EXPECT_EQ(client.SetArchived("faults", false), "");
  // One that lives on would ask again a minute later.
  scene_.agent().Kill();
  const auto committed = [&] {
    const auto status = client.Status();
    return status ? status->samples_committed() : 0;
  };
  const std::uint64_t before = committed();
  scene_.StartAgent(master_.grpc_address());
  // Whoever closes while its trial is refused is told so and waits for nothing.
  EXPECT_TRUE(scene_.Await("it takes the trial again", absl::Seconds(60), [&] {
    return committed() > before;
  })) << scene_.Logs();
  ExpectStored();
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
  for (int i = 0; i < 3; ++i) {
    scene_.agent().Signal(SIGSTOP);
    ExpectSteps("it is stopped again and again");
    scene_.agent().Signal(SIGCONT);
  }
  scene_.agent().Signal(SIGSTOP);
  ExpectSteps("it is stopped, the rings are full", kManySteps);
  scene_.agent().Signal(SIGCONT);
  ExpectStored();
  EXPECT_GT(dropped(), 0U);
}

TEST_F(NeverHarmTest, AgentRule17_NoStepWaitsBesideForksExecsAndSignals) {
  StartMaster();
  scene_.StartAgent(master_.grpc_address());
  waits_max_ = kWaitsBesideForksMax;
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
  StartCalm({{"--disturb", "8"}});
  ExpectSteps("no descriptor is left");
  ExpectStored();
  EXPECT_EQ(dropped(), 0U);
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

// With rings in shared memory, as they lie where no spool directory is given. What is on the disk is mapped by the
// recorder, too: a page of it that cannot be had any more would be a SIGBUS.
TEST_F(NeverHarmTest, AgentRule17_NoStepWaitsForADiskThatTurnsReadOnly) {
  const BreakableDisk disk(scene_.path("disk"));
  if (!disk.trouble().empty()) GTEST_SKIP() << disk.trouble();
  const std::string spool = absl::StrCat(disk.directory(), "/stepwell-", geteuid());
  ASSERT_EQ(mkdir(spool.c_str(), 0700), 0);
  scene_.set_spool_dir(spool);
  StartMaster();
  scene_.StartAgent(master_.grpc_address());
  setenv("TMPDIR", disk.directory().c_str(), 1);
  StartHeld({{"--spool-dir", ""}, {"--scopes", "0"}, {"--rate", "8000"}, {"--close-wait-ms", "0"}});
  unsetenv("TMPDIR");
  MasterClient client(master_.grpc_address());
  EXPECT_TRUE(scene_.Await("some is stored", absl::Seconds(60), [&] {
    const auto status = client.Status();
    return status && status->samples_committed() > 0;
  })) << scene_.Logs();
  ASSERT_TRUE(disk.TurnReadOnly());
  // More than the largest ring holds, to which it grows where the agent is late.
  ExpectSteps("it may only be read, the rings are full", 15 * kManySteps);
  EXPECT_TRUE(scene_.agent().running());
  EXPECT_THAT(scene_.Logs(), HasSubstr("Read-only file system"));
  ExpectEnd("exit 3");
  EXPECT_GT(dropped(), 0U);
  // What is stored is so once and as it was recorded.
  (void)scene_.ExpectExact(master_, Demand::kAcked);
  EXPECT_EQ(master_.Stop(), "exit 0") << master_.LogTail();
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

// The first ring of 256 KiB fits, the next one of 1 MiB does not. The ledger grows in a process of its own, with which the thread
// shares a pipe.
TEST_F(NeverHarmTest, AgentRule17_NoStepWaitsForFilesThatMayNotGrow) {
  StartMaster();
  const std::string lines = scene_.path("lines");
  ASSERT_EQ(mkfifo(lines.c_str(), 0600), 0);
  ChildProcess ledger;
  ledger.Start({"/bin/sh", "-c", absl::StrCat("exec cat ", lines, " >> ", scene_.path("ledger-0"))},
               {}, scene_.path("cat.log"));
  waits_max_ = kWaitsBesideReader;
  StartHeld({{"--files-max", absl::StrCat(512 << 10)},
             {"--log", lines},
             {"--scopes", "0"},
             {"--rate", "4000"}});
  AwaitBegin();
  if (trainer_->Wait(absl::ZeroDuration()) == "exit 77") GTEST_SKIP() << "no pipe of a megabyte";
  ExpectSteps("no agent yet, the ring is full", 6 * kSteps);
  scene_.StartAgent(master_.grpc_address());
  ExpectSteps("an agent");
  ExpectEnd("exit 0");
  ASSERT_EQ(ledger.Wait(absl::Seconds(20)), "exit 0");
  (void)scene_.ExpectExact(master_, Demand::kRecorded, scene_.DropsOfRecorders());
  EXPECT_GT(dropped(), 0U);
  EXPECT_EQ(master_.Stop(), "exit 0") << master_.LogTail();
}

// The recorder would start its agent, and is refused.
TEST_F(NeverHarmTest, AgentRule17_NoStepWaitsWhereNoProcessMayBeStarted) {
  StartMaster();
  StartCalm({{"--no-processes", "1"}, {"--agent", testing::BuiltProgram("stepwell")}});
  AwaitBegin();
  if (trainer_->Wait(absl::ZeroDuration()) == "exit 77") GTEST_SKIP() << "no seccomp";
  ExpectSteps("no agent can be started");
  scene_.StartAgent(master_.grpc_address());
  ExpectSteps("an agent of others");
  ExpectStored();
  EXPECT_EQ(dropped(), 0U);
  EXPECT_THAT(Said(), HasSubstr("cannot be started: Operation not permitted"));
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
