#include "server/http/host_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepwell {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(HostNamesTest, NamesAndAddressesAreTaken) {
  EXPECT_THAT(*ParseHostNames(" a.example, my_host-2,10.0.0.7,[fe80::1] ,"),
              ElementsAre("a.example", "my_host-2", "10.0.0.7", "[fe80::1]"));
  EXPECT_THAT(*ParseHostNames(""), ElementsAre());
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
