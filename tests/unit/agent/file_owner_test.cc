#include "client/agent/file_owner.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <thread>

namespace stepwell::agent {
namespace {

constexpr FileOwner kOther = {40001, 40001};

class FileOwnerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can act as another user";
    char pattern[] = "/tmp/stepwell-owner-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    path_ = pattern;
    ASSERT_EQ(mkdir((path_ + "/secret").c_str(), 0700), 0);
    ASSERT_EQ(mkdir((path_ + "/open").c_str(), 0777), 0);
    std::filesystem::permissions(path_, std::filesystem::perms(0755));
    std::filesystem::permissions(path_ + "/open", std::filesystem::perms(0777));
  }
  void TearDown() override { std::filesystem::remove_all(path_); }
  // 0, or the errno.
  int Make(const std::string& name) {
    const int fd = open((path_ + name).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return errno;
    close(fd);
    return 0;
  }
  std::string path_;
};

TEST_F(FileOwnerTest, IsWhatTheUserMayDoAndNothingElse) {
  {
    const ActAs acting(kOther);
    EXPECT_EQ(Make("/secret/a"), EACCES);
    EXPECT_EQ(Make("/open/a"), 0);
    // Another thread, which was there before or is asked to be itself, is another matter.
    std::thread([this] {
      const ActAs root(FileOwner{0, 0});
      EXPECT_EQ(Make("/secret/b"), 0);
    }).join();
    EXPECT_EQ(Make("/secret/c"), EACCES);
  }
  EXPECT_EQ(Make("/secret/d"), 0);
  struct stat status {};
  ASSERT_EQ(stat((path_ + "/open/a").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, kOther.uid);
  EXPECT_EQ(status.st_gid, kOther.gid);
}

TEST_F(FileOwnerTest, NobodyElseMeansOneself) {
  const ActAs acting(std::nullopt);
  EXPECT_EQ(Make("/secret/a"), 0);
}

}  // namespace
}  // namespace stepwell::agent
