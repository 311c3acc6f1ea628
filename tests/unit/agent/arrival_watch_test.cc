#include "client/agent/arrival_watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "absl/time/clock.h"

namespace stepwell::agent {
namespace {

namespace fs = std::filesystem;

class ArrivalWatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/stepwell-arrival-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    path_ = pattern;
    directory_ = FileDescriptor(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  void TearDown() override { fs::remove_all(path_); }

  bool BecomesTold(int count) const {
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    while (told_ < count && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
    return told_ >= count;
  }

  fs::path path_;
  FileDescriptor directory_;
  std::atomic<int> told_ = 0;
};

TEST_F(ArrivalWatchTest, TellsOfWhatIsMadeAndOfWhatIsMovedIn) {
  fs::create_directory(path_ / "watched");
  const FileDescriptor watched(
      open((path_ / "watched").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ArrivalWatch watch([this] { ++told_; });
  watch.Add(watched.get());
  // Whatever it is called.
  fs::rename(path_ / "watched", path_ / "renamed");
  fs::create_directory(path_ / "renamed/one");
  ASSERT_TRUE(BecomesTold(1));
  std::ofstream(path_ / "beside") << "";
  const int told = told_;
  fs::rename(path_ / "beside", path_ / "renamed/two");
  EXPECT_TRUE(BecomesTold(told + 1));
}

// A writer of names without end costs a bounded number of wakes.
TEST_F(ArrivalWatchTest, TellsAtMostEach10Ms) {
  ArrivalWatch watch([this] { ++told_; });
  watch.Add(directory_.get());
  const absl::Time begin = absl::Now();
  for (int i = 0; i < 2000; ++i) fs::create_directory(path_ / std::to_string(i));
  ASSERT_TRUE(BecomesTold(1));
  const absl::Duration took = absl::Now() - begin;
  EXPECT_LE(told_, 2 + took / absl::Milliseconds(10));
}

TEST_F(ArrivalWatchTest, ADirectoryThatIsGoneIsNoTrouble) {
  ArrivalWatch watch([this] { ++told_; });
  watch.Add(directory_.get());
  EXPECT_TRUE(watch.watches_all());
  watch.Add(-1);
  EXPECT_FALSE(watch.watches_all());
  fs::remove_all(path_);
  fs::create_directory(path_);
  const FileDescriptor again(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  watch.Add(again.get());
  fs::create_directory(path_ / "one");
  EXPECT_TRUE(BecomesTold(1));
}

}  // namespace
}  // namespace stepwell::agent
