#include "base/server_address.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

TEST(ServerAddressTest, IsAHostAndAPort) {
  const struct {
    std::string text;
    bool is_address;
  } rows[] = {
      {"127.0.0.1:7817", true},
      {"master.example.org:1", true},
      {"[::1]:65535", true},
      {"[fe80::1%eth0]:7", true},
      {"unix:7817", true},  // a host that is called so
      {"", false},
      {"host", false},
      {":7817", false},
      {"host:0", false},
      {"host:65536", false},
      {"host:07817", false},
      {"host:+7", false},
      {"host: 7", false},
      {"host:7817 ", false},
      {"::1:7817", false},
      {"[]:7817", false},
      {"unix:///run/socket:1", false},
      {"dns://8.8.8.8/host:1", false},
      {"a b:1", false},
      {std::string(256, 'a') + ":1", false},
      {"offline", false},
  };
  for (const auto& row : rows) EXPECT_EQ(IsServerAddress(row.text), row.is_address) << row.text;
}

}  // namespace
}  // namespace stepwell
