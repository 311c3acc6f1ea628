// Which addresses nobody but this machine reaches: a name that looks like one is none.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace stepwell
