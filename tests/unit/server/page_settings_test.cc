#include "server/http/page_settings.h"

#include <gtest/gtest.h>

#include <string>

namespace stepwell {
namespace {

TEST(PageSettingsTest, AddressesOfPagesAreTaken) {
  for (const char* address : {"https://ui.perfetto.dev", "http://localhost:10000",
                              "http://127.0.0.1:1/", "http://[::1]:80", "https://[fe80::1]/ui",
                              "https://tools.example/perfetto/v1.2_a~b/%20x"}) {
    EXPECT_TRUE(IsViewerAddress(address)) << address;
  }
}

// What a browser would run, resolve against our own page, or send a name and a password to.
TEST(PageSettingsTest, WhatIsNoneIsRefused) {
  for (const char* address : {"",
                              "ui.perfetto.dev",
                              "//ui.perfetto.dev",
                              "/perfetto",
                              "javascript:alert(1)",
                              "data:text/html,x",
                              "file:///etc/passwd",
                              "https://",
                              "https:///x",
                              "https://a@b",
                              "https://user:word@b",
                              "https://a:",
                              "https://a:0",
                              "https://a:65536",
                              "https://a:+8",
                              "https://a b",
                              "https://a/?url=x",
                              "https://a/#x",
                              "https://a/\"x",
                              "https://a/\n",
                              "https://[]",
                              "https://[::1",
                              "https://[::1]x",
                              "https://a\\b",
                              "https://\xff"}) {
    EXPECT_FALSE(IsViewerAddress(address)) << address;
  }
  EXPECT_FALSE(IsViewerAddress("https://a/" + std::string(600, 'x')));
}

TEST(PageSettingsTest, ThePageReadsJson) {
  EXPECT_EQ(PageSettingsJson("https://a.example"), "{\"trace_viewer\":\"https://a.example\"}\n");
}

}  // namespace
}  // namespace stepwell
