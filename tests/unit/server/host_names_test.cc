#include "server/http/host_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "base/tls/tls_authority.h"

namespace stepwell {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(HostNamesTest, NamesAndAddressesAreTaken) {
  EXPECT_THAT(*ParseHostNames(" a.example, my_host-2,10.0.0.7,[fe80::1] ,"),
              ElementsAre("a.example", "my_host-2", "10.0.0.7", "[fe80::1]"));
  EXPECT_THAT(*ParseHostNames(""), ElementsAre());
}

TEST(HostNamesTest, ThoseOfTheMastersCertificateCountAsWell) {
  const TlsAuthority ca =
      *TlsAuthority::Make("ca", absl::Now() - absl::Hours(1), absl::Now() + absl::Hours(1));
  const TlsRequest request{TlsSide::kServer,
                           "s",
                           {"master.lab", "2001:db8::7"},
                           absl::Now() - absl::Hours(1),
                           absl::Now() + absl::Hours(1)};
  EXPECT_THAT(*ParseHostNames("a.example", ca.Sign(request)->cert_pem),
              ElementsAre("master.lab", "[2001:db8::7]", "a.example"));
  EXPECT_FALSE(ParseHostNames("*", ca.Sign(request)->cert_pem).ok());
}

TEST(HostNamesTest, WhatNoHostHeaderNamesIsRefused) {
  for (const char* list : {"http://a.example", "a.example:7818", "a.example/page", "*.example", "*",
                           "fe80::1", "[]", "ok,a b", "\xff"}) {
    const auto names = ParseHostNames(list);
    ASSERT_FALSE(names.ok()) << list;
    EXPECT_THAT(std::string(names.status().message()), HasSubstr("no name of a host"));
  }
}

}  // namespace
}  // namespace stepwell
