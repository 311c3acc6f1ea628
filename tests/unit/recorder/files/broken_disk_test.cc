// Disks that fail under a recording program: it goes on, and what was lost is counted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <system_error>
#include <thread>

#include "client/recorder/src/early_events.h"
#include "stepwell/recorder.h"
#include "tests/unit/recorder/files/in_child.h"
#include "tests/unit/recorder/files/own_mounts.h"
#include "tests/unit/recorder/files/spool_files.h"

namespace stepwell::recorder {
namespace {

using testing::HasSubstr;

class BrokenDiskTest : public testing::Test {
 protected:
  // Runs `body` with a tmpfs on root(); skips where mounting is not allowed.
  void WithTmpfs(const std::string& options, unsigned long flags,
                 const std::function<void()>& body) {
    const int status = RunInChild([&] {
      if (!MountOwnTmpfs(root(), options + ",mode=0700", flags)) _exit(kExitSkipped);
      body();
    });
    ASSERT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
    if (WEXITSTATUS(status) == kExitSkipped) GTEST_SKIP() << "mounting a tmpfs is not allowed here";
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  stepwell_state Open() {
    stepwell_options options;
    stepwell_options_init(&options);
    options.spool_dir = root().c_str();
    return stepwell_open(&options);
  }
  const std::string& root() const { return directory_.path(); }

  TemporaryDirectory directory_;
};

void RecordScopes(int count) {
  const stepwell_scope_id name = stepwell_define_scope("a");
  for (int i = 0; i < count; ++i) {
    stepwell_scope scope;
    stepwell_scope_begin(&scope, name);
    stepwell_scope_end(&scope);
  }
}

TEST_F(BrokenDiskTest, TooSmallForAnythingIsMemoryOnly) {
  WithTmpfs("size=64k", 0, [this] {
    EXPECT_EQ(Open(), STEPWELL_MEMORY_ONLY);
    EXPECT_THAT(stepwell_message(), HasSubstr("No space left on device"));
    RecordScopes(100);
    EXPECT_EQ(stepwell_dropped_count(), 0u);
    stepwell_close(0);
  });
}

TEST_F(BrokenDiskTest, AgentRule01_TooSmallForRingsDropsAndCounts) {
  // Room for header and names (516 KiB), not for a ring of 260 KiB.
  WithTmpfs("size=640k", 0, [this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING) << stepwell_message();
    RecordScopes(100);
    SpoolFiles files(FindWriters(root())[0]);
    // There may be room before the end: until then they wait.
    EXPECT_EQ(files.header().early_count, 100u);
    EXPECT_EQ(stepwell_dropped_count(), 0u);
    RecordScopes(kEarlyCountMax);
    EXPECT_EQ(stepwell_dropped_count(), 100u);
    stepwell_close(0);
    EXPECT_EQ(files.header().early_count, 0u);
    EXPECT_EQ(files.header().dropped_no_ring, kEarlyCountMax + 100u);
    EXPECT_EQ(stepwell_dropped_count(), kEarlyCountMax + 100u);
  });
}

TEST_F(BrokenDiskTest, AgentRule01_FullWhenARingShouldGrowDropsAndCounts) {
  WithTmpfs("size=1m", 0, [this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING) << stepwell_message();
    RecordScopes(20'000);
    const SpoolFiles files(FindWriters(root())[0]);
    const std::size_t kept = files.ReadRing(0).events.size();
    EXPECT_GT(kept, 8000u);
    EXPECT_EQ(kept + stepwell_dropped_count(), 20'000u);
    stepwell_close(0);
  });
}

TEST_F(BrokenDiskTest, ReadOnlyIsMemoryOnly) {
  WithTmpfs("size=4m", MS_RDONLY, [this] {
    EXPECT_EQ(Open(), STEPWELL_MEMORY_ONLY);
    EXPECT_THAT(stepwell_message(), HasSubstr("Read-only file system"));
    RecordScopes(100);
    stepwell_close(0);
  });
}

TEST_F(BrokenDiskTest, DeletedUnderWayGoesOn) {
  ExpectInChild([this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    RecordScopes(100);
    // A ring may be made meanwhile, in the folder that is being emptied.
    for (std::error_code error = std::make_error_code(std::errc::directory_not_empty);
         error == std::errc::directory_not_empty;) {
      std::filesystem::remove_all(root() + "/f1", error);
    }
    RecordScopes(100);
    // This thread's ring is still mapped, and maybe one that was made ahead for the next.
    std::thread([] { RecordScopes(100); }).join();
    std::thread([] { RecordScopes(100); }).join();
    EXPECT_EQ(stepwell_close(0), 0);
    EXPECT_THAT(stepwell_dropped_count(), testing::AnyOf(100u, 200u));
  });
}

TEST_F(BrokenDiskTest, MissingParentIsMemoryOnly) {
  ExpectInChild([this] {
    std::filesystem::remove_all(root());
    stepwell_options options;
    stepwell_options_init(&options);
    const std::string below = root() + "/spool";
    options.spool_dir = below.c_str();
    EXPECT_EQ(stepwell_open(&options), STEPWELL_MEMORY_ONLY);
    EXPECT_THAT(stepwell_message(), HasSubstr("No such file or directory"));
    RecordScopes(100);
    stepwell_close(0);
  });
}

}  // namespace
}  // namespace stepwell::recorder
