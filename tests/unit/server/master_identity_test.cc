#include "server/master_identity.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "base/uuid.h"

namespace stepwell {
namespace {

TEST(DefaultDataDirectoryTest, FollowsWhoAsks) {
  struct Row {
    const char* name;
    HomeFacts facts;
    const char* directory;  // empty: there is none
  };
  const std::vector<Row> rows = {
      {"root", {.is_root = true, .xdg_data_home = "/x", .home = "/root"}, "/var/lib/stepwell"},
      {"root without a home", {.is_root = true}, "/var/lib/stepwell"},
      {"XDG", {.xdg_data_home = "/x/share", .home = "/h/a"}, "/x/share/stepwell"},
      {"XDG alone", {.xdg_data_home = "/x"}, "/x/stepwell"},
      {"HOME", {.home = "/h/a"}, "/h/a/.local/share/stepwell"},
      // The specification has relative paths ignored.
      {"relative XDG", {.xdg_data_home = "x", .home = "/h/a"}, "/h/a/.local/share/stepwell"},
      {"neither", {}, ""},
      {"both relative", {.xdg_data_home = "x", .home = "home"}, ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const auto directory = DefaultDataDirectory(row.facts);
    if (*row.directory != '\0') {
      ASSERT_TRUE(directory.ok()) << directory.status();
      EXPECT_EQ(*directory, row.directory);
      continue;
    }
    EXPECT_EQ(directory.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(directory.status().message(),
              "no --data-dir, and neither XDG_DATA_HOME nor HOME says where data may be kept");
  }
}

class MasterIdTest : public ::testing::Test {
 protected:
  MasterIdTest() {
    std::string name = ::testing::TempDir() + "/master-id-XXXXXX";
    directory_ = mkdtemp(name.data());
  }
  ~MasterIdTest() override { std::filesystem::remove_all(directory_); }

  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ + "/" + name) << text;
    return directory_ + "/" + name;
  }

  std::string directory_;
};

TEST_F(MasterIdTest, OfADirectoryIsMadeOnceAndKept) {
  const auto made = MasterIdOf(directory_);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE(Uuid::FromText(*made).has_value()) << *made;
  EXPECT_EQ(*MasterIdOf(directory_), *made);
  Write("master-id", "mine\n");
  EXPECT_EQ(*MasterIdOf(directory_), "mine");
  Write("master-id", " \n");
  const auto again = MasterIdOf(directory_);
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(Uuid::FromText(*again).has_value()) << "an empty one, of a full disk, is made anew";
}

TEST_F(MasterIdTest, WithoutADirectoryIsTheMachineAndWhereItListens) {
  const std::string machine = Write("machine-id", "0123abcd\n");
  const std::string mark = "f84bcaa6358d18fbd6a65be570adc6bd";
  EXPECT_EQ(MasterIdOf("127.0.0.1", 7817, machine), mark + "@127.0.0.1:7817")
      << "of its id a digest alone, the same after each start";
  EXPECT_EQ(MasterIdOf("::1", 7817, machine), mark + "@[::1]:7817");
  EXPECT_NE(MasterIdOf("127.0.0.1", 7818, machine), MasterIdOf("127.0.0.1", 7817, machine))
      << "two masters of a machine are two";
  char host[256] = {};
  ASSERT_EQ(gethostname(host, sizeof(host) - 1), 0);
  for (const std::string& file : {directory_ + "/none", Write("empty", "\n")}) {
    EXPECT_EQ(MasterIdOf("127.0.0.1", 7817, file), std::string(host) + "@127.0.0.1:7817") << file;
  }
}

TEST_F(MasterIdTest, AFileIsWrittenWholeForItsOwnerAlone) {
  const std::string path = directory_ + "/ready";
  ASSERT_TRUE(WriteFileAtomically(path, "one\n").ok());
  ASSERT_TRUE(WriteFileAtomically(path, "two\n").ok());
  EXPECT_EQ(*ReadWholeFile(path), "two\n");
  struct stat about {};
  ASSERT_EQ(stat(path.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600U) << "it holds a database URL";
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_), {}), 1)
      << "nothing is left beside it";
  const absl::Status failed = WriteFileAtomically(directory_ + "/none/ready", "x");
  EXPECT_EQ(failed.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(failed.message(),
            "cannot write " + directory_ + "/none/ready: No such file or directory");
}

// A directory that others write into, /tmp say: a link there would have the master write over what it leads to.
TEST_F(MasterIdTest, AFileIsWrittenThroughNoLink) {
  const std::string path = directory_ + "/ready";
  const std::string victim = Write("victim", "untouched");
  for (const std::string& planted : {path, path + "." + std::to_string(getpid()) + ".tmp"}) {
    SCOPED_TRACE(planted);
    unlink(path.c_str());
    ASSERT_EQ(symlink(victim.c_str(), planted.c_str()), 0);
    const absl::Status written = WriteFileAtomically(path, "secret\n");
    ASSERT_TRUE(written.ok()) << written;
    EXPECT_EQ(*ReadWholeFile(victim), "untouched");
    EXPECT_FALSE(std::filesystem::is_symlink(path));
    EXPECT_EQ(*ReadWholeFile(path), "secret\n");
  }
}

}  // namespace
}  // namespace stepwell
