// A spool on a file system that somebody else serves, for real: FUSE stands for NFS, Lustre and the
// rest, of which spool_root_test.cc has the numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "stepwell/stepwell.h"
#include "tests/unit/recorder/files/fuse_mount.h"
#include "tests/unit/recorder/files/in_child.h"
#include "tests/unit/recorder/files/own_mounts.h"
#include "tests/unit/recorder/files/recorder_fixture.h"
#include "tests/unit/recorder/files/spool_files.h"

namespace stepwell::recorder {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr char kWhy[] =
    "it lies on FUSE, whose hung server would hang the training (choose a local file system)";

class FuseRootTest : public testing::Test {
 protected:
  // Runs `body` in a process of its own, where `path` and all below it are on FUSE. `prepare` makes
  // the directory. Skips where that cannot be mounted.
  void WithFuse(const std::string& path, const std::function<bool()>& prepare,
                const std::function<void(const FuseMount&)>& body) {
    if (access("/dev/fuse", R_OK | W_OK) != 0) {
      GTEST_SKIP() << "FUSE cannot be mounted here: /dev/fuse: " << std::strerror(errno);
    }
    const int status = RunInChild([&] {
      if (!TakeOwnMounts() || !prepare()) _exit(kExitSkipped);
      const FuseMount fuse(path);
      if (!fuse.is_mounted()) _exit(kExitSkipped);
      body(fuse);
    });
    ASSERT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
    if (WEXITSTATUS(status) == kExitSkipped) GTEST_SKIP() << "mounting FUSE is not allowed here";
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  const std::string& local() const { return directory_.path(); }

  TemporaryDirectory directory_;
};

// Who names a directory means that one: what is recorded stays in memory.
TEST_F(FuseRootTest, AgentRule06_AGivenRootOnFuseIsRefusedAndTheSpoolStaysInMemory) {
  const struct {
    const char* name;
    std::string mounted;
    std::string given;
    std::string refused;
  } rows[] = {
      {"the root itself", local() + "/a", local() + "/a", local() + "/a"},
      {"a root that would be made there", local() + "/b", local() + "/b/spool",
       local() + "/b/spool"},
      {"a mount in a local root", local() + "/c/f1", local() + "/c", local() + "/c/f1"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const auto prepare = [&row] {
      fs::create_directories(row.mounted);
      fs::permissions(row.given.size() < row.mounted.size() ? row.given : row.mounted,
                      fs::perms::owner_all);
      return true;
    };
    WithFuse(row.mounted, prepare, [&row](const FuseMount& fuse) {
      const Recorder recorder({.spool_dir = row.given, .exit_wait = milliseconds(0)});
      EXPECT_EQ(recorder.state(), STEPWELL_MEMORY_ONLY);
      EXPECT_EQ(recorder.message(),
                "the spool directory " + row.refused + " is refused: " + std::string(kWhy));
      Scoped("a");
      EXPECT_EQ(recorder.dropped_count(), 0u);
      EXPECT_EQ(fuse.made_count(), 0) << "something was left there";
    });
    if (IsSkipped()) return;
  }
}

// A job's own TMPDIR often lies on a file server. /tmp, which comes next, is one of the test's own.
TEST_F(FuseRootTest, AgentRule06_WithTmpdirAndSharedMemoryOnFuseRingsLieInTmp) {
  const std::string fuse_path = "/tmp/fuse";
  const auto prepare = [&] {
    return mount("tmpfs", "/tmp", "tmpfs", 0, "mode=1777") == 0 && fs::create_directory(fuse_path);
  };
  WithFuse(fuse_path, prepare, [&](const FuseMount& fuse) {
    unsetenv("STEPWELL_SPOOL_DIR");
    setenv("TMPDIR", fuse_path.c_str(), 1);
    setenv("STEPWELL_SHARED_MEMORY", fuse_path.c_str(), 1);
    setenv("STEPWELL_SYSTEM_ROOT", "/no/such/root", 1);
    const std::string name = "/stepwell-" + std::to_string(geteuid());
    const Recorder recorder({.trial = "t", .exit_wait = milliseconds(0)});
    EXPECT_EQ(recorder.state(), STEPWELL_RECORDING);
    EXPECT_EQ(recorder.message(), "the spool directory " + fuse_path + name + " is refused: " +
                                      kWhy + "; cannot make a spool directory " + fuse_path + name +
                                      "-XXXXXX: " + kWhy + "; records into /tmp" + name);
    Scoped("a");
    stepwell_close(0);  // until then the ring may still be made
    const auto writers = FindWriters("/tmp" + name);
    ASSERT_EQ(writers.size(), 1u);
    EXPECT_TRUE(fs::exists(writers[0] / "ring-0"));
    EXPECT_EQ(fuse.made_count(), 0) << "something was left there";
  });
}

}  // namespace
}  // namespace stepwell::recorder
