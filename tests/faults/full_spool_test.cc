// The spool's file system is full, or may only be read, or the spool has reached its bound. Training goes on as before; what
// could not be kept is counted and declared; another agent beside it, with a spool elsewhere, notices nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

#include "absl/strings/str_cat.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"
#include "tests/faults/small_disk.h"

namespace stepwell::faults {
namespace {

using ::testing::HasSubstr;

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// An agent and a trainer of rank 1 on a spool of their own.
class Neighbour {
 public:
  Neighbour(Scene& scene, const std::string& server)
      : scene_(scene), spool_(scene.path("healthy")) {
    mkdir(spool_.c_str(), 0700);
    agent_.Start({testing::BuiltProgram("stepwell"), "agent", "--server", server, "--spool-dir",
                  spool_, "--no-auto-sampling"},
                 {}, scene.path("healthy-agent.log"));
  }
  ChildProcess& StartTrainer(std::map<std::string, std::string> options) {
    options["--spool-dir"] = spool_;
    options["--world-size"] = "2";
    return scene_.StartTrainer(1, options);
  }
  // After its trainer closed. What happened to the other spool cost it nothing.
  void ExpectUnharmed() {
    EXPECT_THAT(scene_.Logs(),
                ::testing::ContainsRegex("rank 1: [0-9]+ samples, 0 events dropped, .*acked\n"));
    EXPECT_TRUE(agent_.running());
    EXPECT_THAT(ReadText(scene_.path("healthy-agent.log")), ::testing::Not(HasSubstr("_trouble")));
  }

 private:
  Scene& scene_;
  const std::string spool_;
  ChildProcess agent_;
};

TEST(FullSpoolTest, AFullDiskCostsCountedSamplesAndNothingElse) {
  Scene scene("full spool");
  const std::string spool = scene.path("small");
  if (const std::string why = MountSmallDisk(spool, "4m"); !why.empty()) GTEST_SKIP() << why;
  scene.set_spool_dir(spool);
  MasterProcess master({.scratch = scene.path("")});
  MasterClient client(master.grpc_address());
  const auto recorded = [&] { return scene.ReadLedgers().samples.size(); };

  const auto committed = [&] {
    const auto status = client.Status();
    return status ? status->chunks_committed() : 0;
  };
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
  scene.StartAgent(master.grpc_address());
  scene.StartTrainer(0, {{"--scopes", "0"}, {"--rate", "500"}});
  Neighbour neighbour(scene, master.grpc_address());
  neighbour.StartTrainer({{"--rate", "20"}});
  ASSERT_TRUE(scene.Await("10 chunks", absl::Seconds(30), [&] { return committed() >= 10; }))
      << scene.Logs();
  // A master that hangs: all must go to the spool.
  master.Pause();
  FillUp(spool + "/filler");
  scene.Say("the master is stopped, the disk is full");
  // Four times what the ring holds.
  const std::size_t full_at = recorded();
  EXPECT_TRUE(scene.Await("32,000 samples more", absl::Seconds(60), [&] {
    return recorded() >= full_at + 32000;
  })) << scene.Logs();
  // A process that starts now cannot record, and says why.
  ChildProcess late;
  late.Start({testing::BuiltProgram("fault_trainer"), "--spool-dir", spool, "--log",
              scene.path("late-ledger"), "--steps", "1", "--close-wait-ms", "0"},
             {}, scene.path("late.log"));
  EXPECT_EQ(late.Wait(absl::Seconds(30)), "exit 4");
  EXPECT_THAT(ReadText(scene.path("late.log")),
              HasSubstr("trainer: does not record: cannot write to the spool directory " + spool +
                        ": No space left on device\n"));
  EXPECT_THAT(ReadText(scene.path("agent.log")),
              HasSubstr("why=\"spool: append: write: No space left on device\"\n"));
  unlink((spool + "/filler").c_str());
  master.Continue();
  scene.Say("there is room again, and a master");
  const std::uint64_t before = committed();
  ASSERT_TRUE(scene.Await("10 chunks more", absl::Seconds(60), [&] {
    return committed() >= before + 10;
  })) << scene.Logs();
  scene.StopProducers(absl::Seconds(60));
  const Verdict verdict = scene.ExpectExact(master, Demand::kRecorded, scene.DropsOfRecorders());
  EXPECT_GT(verdict.declared_count, 0U);
  EXPECT_EQ(verdict.declared_count, scene.ReadLedgers().dropped_count);
  neighbour.ExpectUnharmed();
  EXPECT_EQ(master.Stop(), "exit 0") << master.LogTail();
}

TEST(FullSpoolTest, AReadOnlyDiskLeavesTheTrainingAlone) {
  Scene scene("read-only spool");
  const std::string spool = scene.path("small");
  if (const std::string why = MountSmallDisk(spool, "4m"); !why.empty()) GTEST_SKIP() << why;
  ASSERT_EQ(mount("none", spool.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, "size=4m"), 0)
      << std::strerror(errno);
  scene.set_spool_dir(spool);
  MasterProcess master({.scratch = scene.path("")});
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
  Neighbour neighbour(scene, master.grpc_address());
  ChildProcess& healthy = neighbour.StartTrainer({{"--rate", "500"}, {"--steps", "500"}});
  scene.StartAgent(master.grpc_address());
  ChildProcess& trainer =
      scene.StartTrainer(0, {{"--rate", "500"}, {"--steps", "500"}, {"--close-wait-ms", "0"}});
  // All of its steps, and it knows that nothing is kept.
  EXPECT_EQ(trainer.Wait(absl::Seconds(30)), "exit 4") << scene.Logs();
  EXPECT_THAT(ReadText(scene.path("producers.log")),
              HasSubstr("trainer: does not record: cannot make the spool directory " + spool +
                        "/f1: Read-only file system\n"));
  EXPECT_EQ(scene.agent().Wait(absl::Seconds(30)), "exit 73");
  EXPECT_EQ(ReadText(scene.path("agent.log")),
            "stepwell agent: " + spool + " cannot be written to: Read-only file system\n");
  EXPECT_EQ(healthy.Wait(absl::Seconds(60)), "exit 0") << scene.Logs();
  EXPECT_EQ(scene.ReadLedgers().samples.size(), 2U * 500 * 10) << scene.Logs();
  neighbour.ExpectUnharmed();
  scene.Say(scene.Logs());
  EXPECT_EQ(master.Stop(), "exit 0") << master.LogTail();
}

// The oldest frames go, while the master is away; a gap counts them, and nothing else is missing.
TEST(FullSpoolTest, ABoundThatIsReachedCostsTheOldestWhichAreDeclared) {
  Scene scene("bounded spool");
  MasterProcess master({.scratch = scene.path("")});
  MasterClient client(master.grpc_address());
  const auto committed = [&] {
    const auto status = client.Status();
    return status ? status->chunks_committed() : 0;
  };
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
  scene.StartAgent(master.grpc_address(), {"--spool-bytes-max", "1048576"});
  scene.StartTrainer(0, {{"--scopes", "0"}, {"--rate", "2000"}});
  ASSERT_TRUE(scene.Await("10 chunks", absl::Seconds(30), [&] { return committed() >= 10; }))
      << scene.Logs();
  // Dead, not stopped: what it had not committed of what was sent is gone with it.
  master.Kill();
  EXPECT_TRUE(scene.Await("the bound is reached", absl::Seconds(120), [&] {
    return ReadText(scene.path("agent.log")).find("spool_full") != std::string::npos;
  })) << scene.Logs();
  const std::size_t full_at = scene.ReadLedgers().samples.size();
  EXPECT_TRUE(scene.Await("30,000 samples more", absl::Seconds(120), [&] {
    return scene.ReadLedgers().samples.size() >= full_at + 30'000;
  })) << scene.Logs();
  EXPECT_TRUE(scene.agent().running());
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
  scene.StopProducers(absl::Seconds(60));
  // On a busy machine rings may be full, too.
  const Allowance drops = scene.DropsOfRecorders();
  const Verdict verdict = scene.ExpectExact(master, Demand::kRecorded,
                                            {.causes = {Cause::kSpoolFull, Cause::kRingFull}});
  // Counted to the last one.
  std::uint64_t told_count = 0;
  for (const StoredGap& gap : scene.stored().gaps) {
    if (gap.cause == Cause::kSpoolFull) told_count += static_cast<std::uint64_t>(gap.sample_count);
  }
  EXPECT_GT(told_count, 0U);
  EXPECT_EQ(verdict.declared_count, told_count + drops.count_max);
  EXPECT_EQ(master.Stop(), "exit 0") << master.LogTail();
}

}  // namespace
}  // namespace stepwell::faults
