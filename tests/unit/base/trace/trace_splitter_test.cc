#include "base/trace/trace_splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/trace/trace_event.h"
#include "tests/support/codec_vectors.h"

namespace stepwell {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

struct Split {
  absl::Status status;
  std::vector<std::string> events;
  std::vector<std::pair<std::string, std::string>> members;
  TraceForm form;
};

Split SplitPieces(const std::string& text, std::mt19937_64& random, std::size_t piece_max) {
  Split split;
  TraceSplitter splitter({.event =
                              [&](std::string_view event) {
                                split.events.emplace_back(event);
                                return absl::OkStatus();
                              },
                          .member =
                              [&](std::string_view name, std::string_view value) {
                                split.members.emplace_back(name, value);
                                return absl::OkStatus();
                              }});
  for (std::size_t at = 0; at < text.size() && split.status.ok();) {
    const std::size_t size = std::min(1 + random() % piece_max, text.size() - at);
    split.status = splitter.Feed(std::string_view(text).substr(at, size));
    at += size;
  }
  if (!split.status.ok()) return split;
  const auto form = splitter.Finish();
  split.status = form.status();
  if (form.ok()) split.form = *form;
  return split;
}

Split SplitWhole(const std::string& text) {
  std::mt19937_64 random(1);
  return SplitPieces(text, random, 1 << 20);
}

TEST(TraceSplitter, BothFormsGiveTheirEventsWhateverThePieces) {
  const std::string object =
      "\xEF\xBB\xBF { \"schemaVersion\" : 1, \"a\\\"b\": \"x}]\\\"\", \"list\":[1,{\"y\":[2]}],\n"
      "\"traceEvents\": [ {\"ph\":\"X\",\"args\":{\"s\":\"}\\\\\"}} ,\n{\"ph\":\"B\"}, ], "
      "\"last\":true}\n";
  const std::string array = "[{\"ph\":\"E\"},{\"ph\":\"B\",\"name\":\"[{\"}]";
  std::mt19937_64 random(testing::TestSeed());
  for (const std::size_t piece_max : {1u, 2u, 3u, 7u, 1000u}) {
    const Split one = SplitPieces(object, random, piece_max);
    ASSERT_TRUE(one.status.ok()) << one.status;
    EXPECT_THAT(one.events,
                ElementsAre("{\"ph\":\"X\",\"args\":{\"s\":\"}\\\\\"}}", "{\"ph\":\"B\"}"));
    EXPECT_THAT(one.members, ElementsAre(Pair("schemaVersion", "1"), Pair("a\\\"b", "\"x}]\\\"\""),
                                         Pair("list", "[1,{\"y\":[2]}]"), Pair("last", "true")));
    EXPECT_FALSE(one.form.is_array);
    EXPECT_FALSE(one.form.is_cut);
    EXPECT_EQ(one.form.event_count, 2);
    const Split other = SplitPieces(array, random, piece_max);
    ASSERT_TRUE(other.status.ok()) << other.status;
    EXPECT_THAT(other.events, ElementsAre("{\"ph\":\"E\"}", "{\"ph\":\"B\",\"name\":\"[{\"}"));
    EXPECT_TRUE(other.form.is_array);
    EXPECT_FALSE(other.form.is_cut);
  }
}

TEST(TraceSplitter, ACutTraceGivesTheEventsBeforeTheCut) {
  const std::string whole = "{\"a\":1,\"traceEvents\":[{\"n\":1},{\"n\":2},{\"n\":3}]}";
  const std::size_t list = whole.find('[');
  for (std::size_t size = list + 1; size < whole.size(); ++size) {
    const Split split = SplitWhole(whole.substr(0, size));
    ASSERT_TRUE(split.status.ok()) << split.status;
    EXPECT_TRUE(split.form.is_cut) << size;
    std::size_t closed = 0;
    for (std::size_t i = list; i < size; ++i) closed += whole[i] == '}';
    EXPECT_EQ(split.events.size(), closed) << size;
  }
  EXPECT_TRUE(SplitWhole("[{\"n\":1},").form.is_cut);
}

TEST(TraceSplitter, WhatIsNoTraceIsRefused) {
  const struct {
    const char* text;
    const char* says;
  } rows[] = {
      {"", "empty"},
      {"   \n", "traceEvents"},
      {"hello", "found 'h'"},
      {"\x01", "byte 1"},
      {"{\"a\":1}", "traceEvents"},
      {"{\"traceEvents\":{}}", "traceEvents"},
      {"{traceEvents:[]}", "a member's name"},
      {"{\"a\" 1}", "':'"},
      {"{\"a\":}", "a value"},
      {"[]x", "the end"},
      {"[}", "an event"},
  };
  for (const auto& row : rows) {
    const Split split = SplitWhole(row.text);
    EXPECT_TRUE(absl::IsInvalidArgument(split.status)) << row.text << ": " << split.status;
    EXPECT_THAT(std::string(split.status.message()), HasSubstr(row.says));
  }
}

TEST(TraceSplitter, WhatIsOverTheBoundsOrNoEventIsPassedOver) {
  std::mt19937_64 random(testing::TestSeed());
  const std::string large = "{\"n\":\"" + std::string(TraceSplitter::kEventBytesMax, 'x') + "\"}";
  const std::string deep = std::string(100'000, '{') + std::string(100'000, '}');
  const std::string text = "[" + large + ",{\"n\":1}," + deep + ",7,\"s\",[1,[2]],null,{\"n\":2}]";
  const Split split = SplitPieces(text, random, 1 << 18);
  ASSERT_TRUE(split.status.ok()) << split.status;
  EXPECT_THAT(split.events, ElementsAre("{\"n\":1}", "{\"n\":2}"));
  EXPECT_EQ(split.form.passed_over, 6);
  const Split member = SplitPieces("{\"big\":" + large + ",\"traceEvents\":[]}", random, 1 << 18);
  EXPECT_THAT(member.members, IsEmpty());
}

TEST(TraceSplitter, AnyBytesEndWithoutHarm) {
  std::mt19937_64 random(testing::TestSeed());
  constexpr std::string_view kBytes = "{}[]\",:\\ \n1ttraceEvents\"traceEvents\":[";
  TraceEventParser parser;
  for (int round = 0; round < 5'000; ++round) {
    std::string text = random() % 2 == 0 ? "[" : "{\"traceEvents\":[";
    for (std::size_t i = random() % 200; i > 0; --i) {
      text += random() % 50 == 0 ? static_cast<char>(random()) : kBytes[random() % kBytes.size()];
    }
    const Split split = SplitPieces(text, random, 1 + random() % 30);
    for (const std::string& event : split.events) {
      if (!parser.Parse(event)) continue;
      EXPECT_TRUE(event.find(parser.event().name) != std::string::npos);
    }
  }
}

}  // namespace
}  // namespace stepwell
