#include "base/trace/trace_event.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace stepwell {
namespace {

TEST(TraceEvent, SlicesAreWhatWasWritten) {
  TraceEventParser parser;
  const std::string json =
      "{ \"ph\" : \"X\", \"name\":\"a \\\"b\\\" \\u00e4\",\"cat\":\"kernel\", \"ts\": 1.50 "
      ",\"dur\":2e1,"
      "\"pid\":\"Spans\",\"tid\":-1,\"args\":{\"x\":[1,{\"ts\":7}],\"name\":\"inner\"},\"id\":7,"
      "\"bind_id\":"
      "\"0x1\",\"bp\":\"e\",\"\":null,\"a\\\"b\":[ ]\n}";
  ASSERT_TRUE(parser.Parse(json));
  const TraceEvent& event = parser.event();
  EXPECT_EQ(event.phase, 'X');
  EXPECT_EQ(event.name, "\"a \\\"b\\\" \\u00e4\"");
  EXPECT_EQ(event.category, "\"kernel\"");
  EXPECT_EQ(event.time, "1.50");
  EXPECT_EQ(event.duration, "2e1");
  EXPECT_EQ(event.pid, "\"Spans\"");
  EXPECT_EQ(event.tid, "-1");
  EXPECT_EQ(event.args, "{\"x\":[1,{\"ts\":7}],\"name\":\"inner\"}");
  EXPECT_EQ(event.id, "7");
  EXPECT_EQ(event.bind_id, "\"0x1\"");
  using Others = std::vector<std::pair<std::string_view, std::string_view>>;
  EXPECT_EQ(event.others, (Others{{"bp", "\"e\""}, {"", "null"}, {"a\\\"b", "[ ]"}}));
  ASSERT_TRUE(parser.Parse("{\"ph\":\"B\"}"));
  EXPECT_TRUE(parser.event().name.empty());
  EXPECT_TRUE(parser.event().others.empty());
}

TEST(TraceEvent, OfMembersThatAreThereTwiceTheLastCounts) {
  TraceEventParser parser;
  ASSERT_TRUE(parser.Parse("{\"ph\":\"B\",\"ts\":1,\"ph\":\"E\",\"ts\":2}"));
  EXPECT_EQ(parser.event().phase, 'E');
  EXPECT_EQ(parser.event().time, "2");
  EXPECT_EQ(MemberOfJson("{\"a\":1,\"b\":2,\"a\":[3]}", "a"), "[3]");
}

TEST(TraceEvent, WhatIsNoEventIsRefused) {
  TraceEventParser parser;
  for (const char* json :
       {"", "{}", "[]", "7", "null", "{\"ph\":\"\"}", "{\"ph\":\"XX\"}", "{\"ph\":7}",
        "{\"ph\":\"X\"", "{\"ph\":\"X\"}}", "{\"ph\":\"X\",}", "{\"ph\":\"X\",\"ts\":NaN}",
        "{\"ph\":\"X\",\"n\":\"\x01\"}", "{\"ph\":\"X\",\"n\":\"\xff\"}",
        "{\"ph\":\"X\",\"n\":\"\\q\"}", "{'ph':'X'}"}) {
    EXPECT_FALSE(parser.Parse(json)) << json;
  }
}

// ASCII is parsed another way than what has other letters.
TEST(TraceEvent, OtherLettersChangeNoOtherSlice) {
  TraceEventParser parser;
  for (const char* letter : {"a", "\xC3\xA4"}) {
    for (std::size_t length = 0; length < 70; ++length) {
      std::string name = "\"";
      for (std::size_t i = 0; i < length; ++i) name += letter;
      name += "\"";
      const std::string json =
          "{\"name\":" + name + ",\"ph\":\"X\" , \"ts\":12.5,\"args\":{\"x\":" + name + "}}";
      ASSERT_TRUE(parser.Parse(json)) << json;
      EXPECT_EQ(parser.event().name, name);
      EXPECT_EQ(parser.event().time, "12.5");
      EXPECT_EQ(parser.event().args, "{\"x\":" + name + "}");
      EXPECT_FALSE(parser.Parse(json.substr(0, json.size() - 1)));
      EXPECT_FALSE(parser.Parse(json + std::string(1, '\0') + "}"));
    }
  }
}

TEST(TraceEvent, TextsGoBothWays) {
  EXPECT_EQ(TextOfJson("\"a\\n\\\"\\u00e4\""), "a\n\"\xC3\xA4");
  EXPECT_EQ(TextOfJson("7"), std::nullopt);
  EXPECT_EQ(TextOfJson("\"open"), std::nullopt);
  EXPECT_EQ(TextOfJson(""), std::nullopt);
  for (const std::string& text : {std::string("plain"), std::string("q\"\\\n\t"),
                                  std::string("\0x", 2), std::string("\xC3\xA4")}) {
    std::string json;
    AppendJsonText(text, json);
    EXPECT_EQ(nlohmann::json::parse(json).get<std::string>(), text);
  }
  std::string json;
  AppendJsonText("a\xff\xC3", json);
  EXPECT_NO_THROW({ EXPECT_EQ(nlohmann::json::parse(json).get<std::string>().substr(0, 1), "a"); });
}

}  // namespace
}  // namespace stepwell
