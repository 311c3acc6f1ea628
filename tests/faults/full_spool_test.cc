// The spool's file system is full, or may only be read. Training goes on as before; what could not
// be kept is counted and declared.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {
namespace {

// A file system of its own for the spool, seen by this process and its children alone. Empty =
// mounted, else why it cannot be.
std::string MountSmall(const std::string& directory, const char* size) {
  if (mkdir(directory.c_str(), 0700) != 0) return std::strerror(errno);
  if (unshare(CLONE_NEWNS) != 0) return absl::StrCat("unshare: ", std::strerror(errno));
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("none", directory.c_str(), "tmpfs", MS_NOSUID,
            absl::StrCat("mode=0700,size=", size).c_str()) != 0) {
    return absl::StrCat("mount: ", std::strerror(errno));
  }
  return "";
}

void FillUp(const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  const std::string block(4096, 'x');
  while (file.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
  }
}

TEST(FullSpoolTest, AFullDiskCostsCountedSamplesAndNothingElse) {
  Scene scene("full spool");
  const std::string spool = scene.path("small");
  if (const std::string why = MountSmall(spool, "4m"); !why.empty()) GTEST_SKIP() << why;
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
  unlink((spool + "/filler").c_str());
  master.Continue();
  scene.Say("there is room again, and a master");
  const std::uint64_t before = committed();
  ASSERT_TRUE(scene.Await("10 chunks more", absl::Seconds(60), [&] {
    return committed() >= before + 10;
  })) << scene.Logs();
  scene.StopProducers(absl::Seconds(60));
  const Verdict verdict = scene.ExpectExact(master, Demand::kRecorded);
  EXPECT_GT(verdict.declared_count, 0U);
  EXPECT_EQ(verdict.declared_count, scene.ReadLedgers().dropped_count);
  EXPECT_EQ(master.Stop(), "exit 0") << master.LogTail();
}

TEST(FullSpoolTest, AReadOnlyDiskLeavesTheTrainingAlone) {
  Scene scene("read-only spool");
  const std::string spool = scene.path("small");
  if (const std::string why = MountSmall(spool, "4m"); !why.empty()) GTEST_SKIP() << why;
  ASSERT_EQ(mount("none", spool.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, "size=4m"), 0)
      << std::strerror(errno);
  scene.set_spool_dir(spool);
  ChildProcess& trainer =
      scene.StartTrainer(0, {{"--rate", "500"}, {"--steps", "500"}, {"--close-wait-ms", "0"}});
  // All of its steps, and it knows that nothing is kept.
  EXPECT_EQ(trainer.Wait(absl::Seconds(30)), "exit 4") << scene.Logs();
  EXPECT_EQ(scene.ReadLedgers().samples.size(), 500U * 10) << scene.Logs();
  scene.Say(scene.Logs());
}

}  // namespace
}  // namespace stepwell::faults
