#include "client/agent/trace_file.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace stepwell::agent {
namespace {

namespace fs = std::filesystem;

// Of somebody else's file the kernel makes no link, as FUSE and others of none: EPERM.
TEST(UnlinkedTraceFileTest, WhereThereAreNoLinksItGetsItsNameAndWhatHasItStays) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  std::string is_protected;
  std::ifstream("/proc/sys/fs/protected_hardlinks") >> is_protected;
  if (is_protected != "1") GTEST_SKIP() << "links to others' files are allowed here";
  char pattern[] = "/tmp/stepwell-trace-file-test-XXXXXX";
  ASSERT_NE(mkdtemp(pattern), nullptr);
  const fs::path folder = pattern;
  fs::permissions(folder, fs::perms(0777));
  for (const char* name : {"ep0-ba8-rank3.pftrace", "ep0-ba8-rank3.2.pftrace"}) {
    auto file = TraceFile::Create({.directory = folder, .rank = 3});
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Append(name).ok());
    const pid_t child = fork();
    if (child == 0) {
      if (setuid(40001) != 0) _exit(2);
      const auto finished = (*file)->Finish({.epoch = 0, .batch = 7});
      _exit(finished.ok() && *finished == name ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << name;
  }
  for (const char* name : {"ep0-ba8-rank3.pftrace", "ep0-ba8-rank3.2.pftrace"}) {
    std::string text;
    std::ifstream(folder / name) >> text;
    EXPECT_EQ(text, name);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 2);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace stepwell::agent
