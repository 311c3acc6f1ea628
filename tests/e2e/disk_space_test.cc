// A disk that fills up under the private PostgreSQL: the master stops taking, says why, and goes on by
// itself when there is room.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "absl/cleanup/cleanup.h"
#include "tests/e2e/raw_call.h"
#include "tests/e2e/spine.h"

namespace stepwell::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class DiskSpaceE2eTest : public SpineTest {
 protected:
  // The next ack whose credit flows, or does not.
  bool WaitCredit(RawStream& stream, bool flows) {
    return stream
        .WaitFor([&](const auto& answer) {
          return answer.has_ack() && (answer.ack().credit_bytes() > 0) == flows;
        })
        .has_value();
  }
};

TEST_F(DiskSpaceE2eTest, AMarkAboveWhatIsFreeStopsTheCreditAndIsSaid) {
  StartMaster({"--disk-low-bytes=1048576000000"});
  EXPECT_TRUE(
      Eventually([&] { return master_->Get("/readyz").find("disk low") != std::string::npos; },
                 absl::Seconds(20)))
      << master_->Get("/readyz");
  EXPECT_THAT(master_->Get("/readyz"), StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(
      master_->Get("/readyz"),
      HasSubstr("free for PostgreSQL's data, the mark is 1000000 MiB; samples are taken again "
                "from 1250000 MiB on: make room, or lower --disk-low-bytes"));
  EXPECT_EQ(Health(client_->channel()), "NOT_SERVING");
  EXPECT_THAT(client_->GetStatus().disk_error(), HasSubstr("the mark is 1000000 MiB"));
  EXPECT_TRUE(client_->GetStatus().database_up());
  // Where it is only who reads the log is told.
  EXPECT_THAT(master_->Get("/readyz"), Not(HasSubstr(master_->data_directory())));
  EXPECT_THAT(client_->GetStatus().disk_error(), Not(HasSubstr("/")));
  EXPECT_THAT(master_->LogTail(), HasSubstr(master_->data_directory() + "/pg"));
  RawStream stream(*client_);
  const Uuid writer = Uuid::Random();
  EXPECT_EQ(Open(stream, writer, "full").credit_bytes(), 0);
  // What comes all the same is not lost.
  ASSERT_TRUE(stream.Send(ChunkMessage(writer, 1, OneColumn(1, NowUs(), 1000, {1, 2}))));
  EXPECT_TRUE(stream.WaitAck(writer, 1).has_value());
  EXPECT_TRUE(client_->Flush().ok()) << "folds free the journal";
  EXPECT_EQ(master_->CountInLog("disk_low"), 1) << "once, on the edge";
}

TEST_F(DiskSpaceE2eTest, ADiskThatFillsAndEmptiesStopsAndStartsTheCredit) {
  const std::string disk = scratch_ / "master.data";
  ASSERT_EQ(mkdir(disk.c_str(), 0755), 0);
  if (mount("stepwell-test", disk.c_str(), "tmpfs", 0, "size=512m,mode=0755") != 0) {
    GTEST_SKIP() << "no tmpfs may be mounted here: " << std::strerror(errno);
  }
  const absl::Cleanup unmount = [&] {
    master_.reset();
    umount2(disk.c_str(), MNT_DETACH);
  };
  StartMaster();
  EXPECT_THAT(master_->Get("/readyz"), StartsWith("HTTP/1.1 200"));
  RawStream stream(*client_);
  const Uuid writer = Uuid::Random();
  EXPECT_GT(Open(stream, writer, "filling").credit_bytes(), 0);

  // A quarter of so small a disk is its mark: 128 MiB.
  struct statvfs about {};
  ASSERT_EQ(statvfs(disk.c_str(), &about), 0);
  const auto free_bytes = static_cast<std::int64_t>(about.f_bavail * about.f_frsize);
  const std::string filler = disk + "/filler";
  const int fd = open(filler.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(posix_fallocate(fd, 0, free_bytes - (64 << 20)), 0);
  close(fd);
  EXPECT_TRUE(WaitCredit(stream, false)) << master_->LogTail();
  EXPECT_GT(client_->GetStatus().disk_free_bytes(), 0);
  // PostgreSQL gives back files of a start meanwhile; from 160 MiB on it would be room again.
  EXPECT_LT(client_->GetStatus().disk_free_bytes(), 160 << 20);
  EXPECT_THAT(master_->Get("/readyz"), StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(master_->Get("/readyz"), HasSubstr("the mark is 128 MiB"));
  EXPECT_EQ(Health(client_->channel()), "NOT_SERVING");

  ASSERT_EQ(unlink(filler.c_str()), 0);
  EXPECT_TRUE(WaitCredit(stream, true)) << master_->LogTail();
  EXPECT_TRUE(
      Eventually([&] { return Health(client_->channel()) == "SERVING"; }, absl::Seconds(20)));
  EXPECT_THAT(master_->Get("/readyz"), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(master_->CountInLog("disk_low"), 1);
  EXPECT_TRUE(
      Eventually([&] { return master_->CountInLog("disk_has_room") == 1; }, absl::Seconds(20)));
  EXPECT_GT(client_->GetStatus().disk_free_bytes(), 128 << 20);
  EXPECT_EQ(client_->GetStatus().disk_error(), "");
  EXPECT_EQ(master_->Stop(), "exit 0") << master_->LogTail();
}

}  // namespace
}  // namespace stepwell::testing
