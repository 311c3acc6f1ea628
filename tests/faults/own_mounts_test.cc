// The mounts of the tests themselves, in a chroot whose root is none: on what is nobody else's they can be had, on what is shared
// with others they are refused, in words.
#include "tests/faults/own_mounts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <string>

#include "tests/faults/scene.h"

namespace stepwell::faults {
namespace {

constexpr int kSkipped = 77;
constexpr char kPlace[] = "/place";

int StatusOf(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class OwnMountsTest : public ::testing::Test {
 protected:
  OwnMountsTest() { Scene::StartsNobody(); }

  // In the calling process: goes below a root that is no mount, on one of this propagation.
  bool EnterChroot(unsigned long propagation) const {
    const std::string disk = scene_.path("disk");
    const std::string root = disk + "/root";
    return mkdir(disk.c_str(), 0700) == 0 && TakeOwnMounts(disk).empty() &&
           mount("none", disk.c_str(), "tmpfs", 0, "mode=0700") == 0 &&
           mount("none", disk.c_str(), nullptr, propagation, nullptr) == 0 &&
           mkdir(root.c_str(), 0700) == 0 && mkdir((root + "/proc").c_str(), 0700) == 0 &&
           mkdir((root + kPlace).c_str(), 0700) == 0 &&
           mount("none", (root + "/proc").c_str(), "proc", 0, nullptr) == 0 &&
           chroot(root.c_str()) == 0 && chdir("/") == 0;
  }
  // What a process below that root is told, and what it mounts is seen by it alone.
  std::string ToldInAChroot(unsigned long propagation) const {
    int told[2];
    if (pipe(told) != 0) return "no pipe";
    const pid_t outer = fork();
    if (outer == 0) {
      if (!EnterChroot(propagation)) _exit(kSkipped);
      int mounted[2];
      int looked[2];
      if (pipe(mounted) != 0 || pipe(looked) != 0) _exit(1);
      const pid_t inner = fork();
      if (inner == 0) {
        close(looked[1]);
        std::string why = TakeOwnMounts(kPlace);
        if (why.empty() && mount("none", kPlace, "tmpfs", 0, "mode=0700") != 0) why = "no tmpfs";
        if (why.empty()) std::ofstream("/place/inside").flush();
        const bool is_told =
            write(told[1], why.data(), why.size()) == static_cast<ssize_t>(why.size());
        close(mounted[1]);
        char end = 0;
        _exit(is_told && read(looked[0], &end, 1) == 0 &&
                      (!why.empty() || access("/place/inside", F_OK) == 0)
                  ? 0
                  : 1);
      }
      close(mounted[1]);
      close(looked[0]);
      char end = 0;
      const bool has_ended = read(mounted[0], &end, 1) == 0;
      const bool is_unseen = access("/place/inside", F_OK) != 0;
      close(looked[1]);
      _exit(has_ended && StatusOf(inner) == 0 && is_unseen ? 0 : 1);
    }
    close(told[1]);
    std::string why(1000, '\0');
    const ssize_t bytes = read(told[0], why.data(), why.size());
    why.resize(bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
    close(told[0]);
    const int status = StatusOf(outer);
    if (status == kSkipped) return "skip";
    EXPECT_EQ(status, 0);
    return why;
  }

  Scene scene_{"own mounts"};
};

TEST_F(OwnMountsTest, AreToBeHadInAChrootOnAPrivateMount) {
  const std::string why = ToldInAChroot(MS_PRIVATE);
  if (why == "skip") GTEST_SKIP() << "no mounts and chroots here";
  EXPECT_EQ(why, "");
}

TEST_F(OwnMountsTest, AreRefusedInAChrootOnASharedMount) {
  const std::string why = ToldInAChroot(MS_SHARED);
  if (why == "skip") GTEST_SKIP() << "no mounts and chroots here";
  EXPECT_THAT(why, ::testing::HasSubstr("is shared with others"));
}

}  // namespace
}  // namespace stepwell::faults
