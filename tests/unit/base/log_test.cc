#include "base/log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

namespace stepwell {
namespace {

std::string Logged(log::Format format, absl::string_view value) {
  log::Setup({.level = log::Level::kInfo, .format = format});
  testing::internal::CaptureStderr();
  log::Info("writer_opened", {{"writer", value}, {"chunks", 12}});
  return testing::internal::GetCapturedStderr();
}

TEST(LogTest, NoValueCanForgeALine) {
  for (const char* value :
       {"a\nERROR forged", "tab\there", "quote\"s", "back\\slash", "\x1b[31m", "",
        "\xc2\x9b"
        "31m",
        "cut \xe2\x82"}) {
    SCOPED_TRACE(value);
    const std::string text = Logged(log::Format::kText, value);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_EQ(text.find('\x9b'), std::string::npos) << "the same of C1";
  }
}

TEST(LogTest, DebugIsSilentAtLevelInfo) {
  log::Setup({.level = log::Level::kInfo, .format = log::Format::kText});
  testing::internal::CaptureStderr();
  log::Debug("noise");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(LogTest, JsonLinesAreJson) {
  const std::string text = Logged(log::Format::kJson, "a\nb\"c\\d\x01");
  log::Setup({});
  const auto json = nlohmann::json::parse(text, nullptr, false);
  ASSERT_FALSE(json.is_discarded()) << text;
  EXPECT_EQ(json["event"], "writer_opened");
  EXPECT_EQ(json["writer"], "a\nb\"c\\d\x01");
  EXPECT_EQ(json["chunks"], "12");
  const std::string odd = Logged(log::Format::kJson, "\xff \xe2\x82\xac \xc2\x85");
  log::Setup({});
  const auto read = nlohmann::json::parse(odd, nullptr, false);
  ASSERT_FALSE(read.is_discarded()) << odd;
  EXPECT_EQ(read["writer"], "\xc3\xbf \xe2\x82\xac \xc2\x85");
}

}  // namespace
}  // namespace stepwell
