#include "client/agent/agent_log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace stepwell::agent {
namespace {

namespace fs = std::filesystem;

class AgentLogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/stepwell-log-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    path_ = pattern;
  }
  void TearDown() override { fs::remove_all(path_); }

  // In a process whose stderr it may take. Writes lines and tends the log as an agent would.
  void Log(int line_count) {
    const pid_t child = fork();
    if (child == 0) {
      const FileDescriptor directory(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      auto log = AgentLog::Open(directory.get());
      if (!log.ok()) _exit(1);
      const std::string line(127, 'x');
      for (int i = 0; i < line_count; ++i) {
        dprintf(STDERR_FILENO, "%s\n", line.c_str());
        if (i % 100 == 0) log->Tend();
      }
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_EQ(status, 0);
  }
  fs::path path_;
};

TEST_F(AgentLogTest, GoesOnInTheSameFile) {
  Log(3);
  Log(4);
  EXPECT_EQ(fs::file_size(path_ / "agent.log"), 7u * 128);
  EXPECT_FALSE(fs::exists(path_ / "agent.log.1"));
}

TEST_F(AgentLogTest, AgentRule08_IsBoundedAndKeepsOneOlderFile) {
  Log(40000);  // 5 MiB
  constexpr std::uintmax_t kMost = AgentLog::kBytesMax + 100 * 128;
  EXPECT_LE(fs::file_size(path_ / "agent.log"), kMost);
  EXPECT_LE(fs::file_size(path_ / "agent.log.1"), kMost);
  EXPECT_GE(fs::file_size(path_ / "agent.log.1"), static_cast<std::uintmax_t>(AgentLog::kBytesMax));
  EXPECT_EQ(std::distance(fs::directory_iterator(path_), {}), 2);
}

TEST_F(AgentLogTest, IsBoundedWhereNoOlderFileCanBeKept) {
  fs::create_directories(path_ / "agent.log.1" / "in the way");
  Log(40000);
  EXPECT_LE(fs::file_size(path_ / "agent.log"),
            static_cast<std::uintmax_t>(AgentLog::kBytesMax) + 100 * 128);
}

TEST_F(AgentLogTest, FollowsNoLink) {
  fs::create_symlink("/tmp/elsewhere", path_ / "agent.log");
  const FileDescriptor directory(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  EXPECT_FALSE(AgentLog::Open(directory.get()).ok());
}

}  // namespace
}  // namespace stepwell::agent
