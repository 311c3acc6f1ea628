#include "client/agent/private_root.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "client/agent/file_descriptor.h"

namespace stepwell::agent {
namespace {

namespace fs = std::filesystem;

class PrivateRootTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/stepwell-private-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    path_ = pattern;
    root_ = path_ / ("stepwell-" + std::to_string(geteuid()) + "-aB3xYz");
    fs::create_directories(root_ / "f1");
    format_ = FileDescriptor(open((root_ / "f1").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (const char* name : {"agent.lock", "agent.log", "agent.log.1"}) {
      std::ofstream(root_ / "f1" / name) << "x";
    }
  }
  void TearDown() override { fs::remove_all(path_); }

  fs::path path_;
  fs::path root_;
  FileDescriptor format_;
};

TEST_F(PrivateRootTest, IsKnownByItsName) {
  EXPECT_TRUE(IsPrivateRoot(root_));
  const std::string uid = std::to_string(geteuid());
  const std::vector<std::string> others = {"stepwell-" + uid, "stepwell-" + uid + "-aB3", "mine",
                                           "stepwell-" + uid + "-aB3xYzz", "stepwell-4711-aB3xYz"};
  for (const std::string& name : others) {
    fs::create_directory(path_ / name);
    EXPECT_FALSE(IsPrivateRoot(path_ / name)) << name;
  }
  const fs::path link = path_ / ("stepwell-" + uid + "-linked");
  fs::create_directory_symlink(root_, link);
  EXPECT_FALSE(IsPrivateRoot(link));
  EXPECT_FALSE(IsPrivateRoot(root_.string() + "x"));
}

TEST_F(PrivateRootTest, GoesWithTheAgentsOwnFiles) {
  fs::create_directory(root_ / "f1/traces");
  EXPECT_TRUE(RemovePrivateRoot(root_, format_.get()));
  EXPECT_FALSE(fs::exists(root_));
}

// All of it, the lock too: it is what says that an agent serves the rest.
TEST_F(PrivateRootTest, StaysWhileAnythingIsLeftInIt) {
  fs::create_directory(root_ / "f1" / "a writer");
  EXPECT_FALSE(RemovePrivateRoot(root_, format_.get()));
  EXPECT_TRUE(fs::exists(root_ / "f1/agent.lock"));
  fs::remove(root_ / "f1" / "a writer");
  // A trace that waits to be uploaded.
  fs::create_directory(root_ / "f1/traces");
  std::ofstream(root_ / "f1/traces/a.json") << "{}";
  EXPECT_FALSE(RemovePrivateRoot(root_, format_.get()));
  EXPECT_TRUE(fs::exists(root_ / "f1/agent.lock"));
  fs::remove(root_ / "f1/traces/a.json");
  std::ofstream(root_ / "note") << "of a person";
  EXPECT_FALSE(RemovePrivateRoot(root_, format_.get()));
  EXPECT_TRUE(fs::exists(root_ / "note"));
}

}  // namespace
}  // namespace stepwell::agent
