// The disk under the private PostgreSQL is full, under load: the one with the data, or that of the WAL alone.
// The master takes no more, or loses its database to a PANIC; agents spool. With room, all goes on by itself.
// How it would fail: an error that is none of the data's is taken for one and the chunks are rejected; a
// supervisor gives up; an ack goes out for what a PANIC took back.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/faults/database_text.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"
#include "tests/faults/small_disk.h"

namespace stepwell::faults {
namespace {

namespace fs = std::filesystem;

class FullDatabaseDiskTest : public ::testing::Test {
 protected:
  ~FullDatabaseDiskTest() override {
    master_.Kill();
    if (!disk_.empty()) umount2(disk_.c_str(), MNT_DETACH);
  }
  std::uint64_t committed() {
    const auto status = client_.Status();
    return status ? status->chunks_committed() : 0;
  }
  // PostgreSQL's own user passes through it.
  std::string Mount(const std::string& directory, const char* size) {
    const std::string why = MountSmallDisk(directory, size);
    if (!why.empty()) return why;
    disk_ = directory;
    return chmod(disk_.c_str(), 0711) == 0 ? "" : "chmod";
  }
  void Load() {
    scene_.StartAgent(master_.grpc_address());
    for (const int rank : {0, 1}) scene_.StartTrainer(rank, {{"--world-size", "2"}});
    scene_.StartRawWriter(10, master_.grpc_address());
    ASSERT_TRUE(scene_.Await("20 chunks", absl::Seconds(90), [&] { return committed() >= 20; }))
        << scene_.Logs() << master_.LogTail();
  }
  // Until PostgreSQL found no room, whether it refused or panicked: new segments of WAL are asked for.
  void FillAndOvercome() {
    const std::string filler = disk_ + "/filler";
    FillUp(filler);
    scene_.Say("the disk is full");
    EXPECT_TRUE(scene_.Await("PostgreSQL says so", absl::Seconds(90), [&] {
      DatabaseText(master_.database_url(), "select pg_switch_wal()");
      return master_.CountInLog("is full)") + master_.CountInLog("No space left") > 0;
    })) << master_.LogTail();
    const std::size_t recorded = scene_.ReadLedgers().samples.size();
    EXPECT_TRUE(scene_.Await("2000 samples more", absl::Seconds(60), [&] {
      return scene_.ReadLedgers().samples.size() >= recorded + 2000;
    }));
    EXPECT_TRUE(master_.running()) << master_.LogTail();
    unlink(filler.c_str());
    scene_.Say("there is room again");
    const std::uint64_t before = committed();
    EXPECT_TRUE(scene_.Await("20 chunks more", absl::Seconds(120),
                             [&] { return committed() >= before + 20; }))
        << scene_.Logs() << master_.LogTail();
    scene_.StopProducers(absl::Seconds(90));
    const auto status = client_.Status();
    ASSERT_TRUE(status);
    EXPECT_EQ(status->chunks_rejected(), 0U);
    const Verdict verdict = scene_.ExpectExact(master_, Demand::kRecorded);
    EXPECT_EQ(verdict.declared_count, 0U);
    EXPECT_EQ(master_.Stop(), "exit 0") << master_.LogTail();
  }

  Scene scene_{::testing::UnitTest::GetInstance()->current_test_info()->name()};
  std::string disk_;
  MasterProcess master_{{.scratch = scene_.path("")}};
  MasterClient client_{master_.grpc_address()};
};

TEST_F(FullDatabaseDiskTest, OfTheDataCostsNothingOnceThereIsRoom) {
  if (const std::string why = Mount(master_.data_directory(), "256m"); !why.empty()) {
    GTEST_SKIP() << why;
  }
  ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail();
  ASSERT_NO_FATAL_FAILURE(Load());
  FillAndOvercome();
  EXPECT_GT(master_.CountInLog("disk_low"), 0) << "nobody looked at the disk";
}

TEST_F(FullDatabaseDiskTest, OfTheWalCostsNothingOnceThereIsRoom) {
  ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail();
  ASSERT_EQ(master_.Stop(), "exit 0") << master_.LogTail();
  const fs::path wal = fs::path(master_.data_directory()) / "pg" / "pg_wal";
  struct stat owner {};
  ASSERT_EQ(stat(wal.c_str(), &owner), 0);
  if (const std::string why = Mount(scene_.path("wal"), "96m"); !why.empty()) GTEST_SKIP() << why;
  ASSERT_EQ(chown(disk_.c_str(), owner.st_uid, owner.st_gid), 0);
  ASSERT_EQ(chmod(disk_.c_str(), 0700), 0);
  ChildProcess copy;
  copy.Start({"/bin/cp", "-a", wal.string() + "/.", disk_}, {}, "/dev/null");
  ASSERT_EQ(copy.Wait(absl::Seconds(60)), "exit 0");
  fs::remove_all(wal);
  fs::create_directory_symlink(disk_, wal);
  ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail();
  ASSERT_NO_FATAL_FAILURE(Load());
  FillAndOvercome();
  EXPECT_GT(master_.CountInLog("private_postgres_down"), 0) << "PostgreSQL did not panic";
}

}  // namespace
}  // namespace stepwell::faults
