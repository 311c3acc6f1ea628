#include "client/agent/agent_lock.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

namespace stepwell::agent {
namespace {

class AgentLockTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/stepwell-lock-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    root_ = pattern;
    auto directory = OpenFormatDirectory(root_);
    ASSERT_TRUE(directory.ok()) << directory.status();
    directory_ = *std::move(directory);
    ASSERT_EQ(pipe(told_), 0);
    ASSERT_EQ(pipe(asked_), 0);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  // A process does not see its own locks: the other agent is another process. It says when it is
  // there, and then waits to be told.
  pid_t Hold(const std::function<void(AgentLock&)>& body) {
    const pid_t child = fork();
    if (child == 0) {
      auto lock = AgentLock::Take(directory_.get());
      if (!lock.ok()) _exit(1);
      body(*lock);
      _exit(0);
    }
    char byte = 0;
    EXPECT_EQ(read(told_[0], &byte, 1), 1);
    return child;
  }
  void Say() { EXPECT_EQ(write(told_[1], "x", 1), 1); }
  void AwaitWord() {
    char byte = 0;
    EXPECT_EQ(read(asked_[0], &byte, 1), 1);
  }
  void LetGo(pid_t child) {
    EXPECT_EQ(write(asked_[1], "x", 1), 1);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }

  std::string root_;
  FileDescriptor directory_;
  int told_[2];
  int asked_[2];
};

TEST_F(AgentLockTest, OneAgentHoldsItAndIsNamed) {
  const pid_t holder = Hold([this](AgentLock&) {
    Say();
    AwaitWord();
  });
  const absl::Status second = AgentLock::Take(directory_.get()).status();
  EXPECT_TRUE(absl::IsAlreadyExists(second)) << second;
  EXPECT_THAT(std::string(second.message()),
              ::testing::HasSubstr("(process " + std::to_string(holder) + ")"));
  LetGo(holder);
  EXPECT_TRUE(AgentLock::Take(directory_.get()).ok());
}

TEST_F(AgentLockTest, OneThatIsAboutToLeaveIsWaitedFor) {
  const pid_t holder = Hold([this](AgentLock& lock) {
    if (!lock.TakeLeaving().ok()) _exit(2);
    Say();
    usleep(200'000);  // what is left to do
  });
  EXPECT_TRUE(AgentLock::Take(directory_.get(), {.leaving_wait = absl::Seconds(20)}).ok());
  int status = 0;
  waitpid(holder, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(AgentLockTest, NotForLongerThanAsked) {
  const pid_t holder = Hold([this](AgentLock& lock) {
    if (!lock.TakeLeaving().ok()) _exit(2);
    Say();
    AwaitWord();
  });
  EXPECT_TRUE(absl::IsAlreadyExists(
      AgentLock::Take(directory_.get(), {.leaving_wait = absl::Milliseconds(100)}).status()));
  LetGo(holder);
}

// Whoever may ask may also lock it for reading.
TEST_F(AgentLockTest, AUserCannotKeepAPublicOneFromTheAgent) {
  { ASSERT_TRUE(AgentLock::Take(directory_.get(), {.is_public = true}).ok()); }
  const pid_t child = fork();
  if (child == 0) {
    const int fd = open((root_ + "/f1/agent.lock").c_str(), O_RDONLY);
    struct flock reading {};
    reading.l_type = F_RDLCK;
    reading.l_whence = SEEK_SET;
    reading.l_len = 2;
    if (fcntl(fd, F_SETLK, &reading) != 0) _exit(1);
    Say();
    AwaitWord();
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(told_[0], &byte, 1), 1);
  EXPECT_TRUE(absl::IsAlreadyExists(
      AgentLock::Take(directory_.get(), {.leaving_wait = absl::ZeroDuration()}).status()));
  EXPECT_TRUE(AgentLock::Take(directory_.get(), {.is_public = true}).ok());
  struct stat status {};
  ASSERT_EQ(stat((root_ + "/f1/agent.lock").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0644u);
  LetGo(child);
}

TEST_F(AgentLockTest, OneThatChangedItsMindStays) {
  const pid_t holder = Hold([this](AgentLock& lock) {
    if (!lock.TakeLeaving().ok()) _exit(2);
    lock.StopLeaving();
    Say();
    AwaitWord();
  });
  EXPECT_TRUE(absl::IsAlreadyExists(
      AgentLock::Take(directory_.get(), {.leaving_wait = absl::Seconds(60)}).status()));
  LetGo(holder);
}

}  // namespace
}  // namespace stepwell::agent
