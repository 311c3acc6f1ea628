// Which addresses nobody but this machine reaches: a name that looks like one is none.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "server/listen_socket.h"

namespace stepwell {
namespace {

TEST(LoopbackTest, IsJudgedByTheAddress) {
  struct Row {
    const char* host;
    bool is_loopback;
  };
  const std::vector<Row> rows = {
      {"127.0.0.1", true},
      {"127.255.255.254", true},
      {"127.1", true},  // as connect and bind understand it
      {"::1", true},
      {"0:0:0:0:0:0:0:1", true},
      {"::ffff:127.0.0.1", true},
      {"localhost", true},
      {"127.example.com", false},
      {"127.0.0.1.example.com", false},
      {"127.", false},
      {"127.0.0.1x", false},
      {"128.0.0.1", false},
      {"1.127.0.1", false},
      {"0.0.0.0", false},
      {"::", false},
      {"::2", false},
      {"fe80::1", false},
      {"::ffff:10.0.0.1", false},
      {"10.0.0.1", false},
      {"localhost.example.com", false},
      {"no-such-host.invalid", false},
      {"", false},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.host);
    EXPECT_EQ(IsLoopback(row.host), row.is_loopback);
  }
}

// IsLoopback takes localhost at its word, so what listens by that name must not be reached from elsewhere: an /etc/hosts
// that gives it all addresses would open a master without TLS and tokens to everybody.
TEST(LoopbackTest, ALocalhostThatIsNoneIsNotListenedOn) {
  std::string hosts = ::testing::TempDir() + "/hosts-XXXXXX";
  const int fd = mkstemp(hosts.data());
  ASSERT_GE(fd, 0);
  close(fd);
  std::ofstream(hosts) << "0.0.0.0 localhost\n";
  constexpr int kNoMounts = 77;
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount(hosts.c_str(), "/etc/hosts", nullptr, MS_BIND, nullptr) != 0) {
      _exit(kNoMounts);
    }
    const auto refused = ListenSocket::Open("localhost", 0);
    const bool is_refused =
        refused.status().message() ==
        "cannot listen on localhost:0: localhost is no loopback address here; see /etc/hosts";
    if (!is_refused) std::cerr << refused.status() << "\n";
    // What it is told by its address is taken as that.
    const bool is_opened = ListenSocket::Open("127.0.0.1", 0).ok();
    _exit(is_refused && is_opened ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  std::filesystem::remove(hosts);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoMounts) GTEST_SKIP() << "no mounts here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace stepwell
