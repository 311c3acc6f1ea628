#include "base/trace/json_members.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/trace/trace_event.h"
#include "tests/support/codec_vectors.h"

namespace stepwell {
namespace {

using Members = std::vector<std::pair<std::string, std::string>>;

Members Walked(const std::string& object) {
  Members all;
  for (JsonMembers members(object); members.Next();) {
    all.emplace_back(members.name(), members.value());
  }
  return all;
}

TEST(JsonMembersTest, EachMemberAsItWasWritten) {
  EXPECT_EQ(Walked("{}"), Members());
  EXPECT_EQ(Walked("{ \t}"), Members());
  EXPECT_EQ(Walked(R"({"a":1, "b\"" : "x}\\" ,"c":[1,{"d":"]"}],"":null,"e":{"f":{}} , "g":-2e5})"),
            (Members{{"a", "1"},
                     {R"(b\")", R"("x}\\")"},
                     {"c", R"([1,{"d":"]"}])"},
                     {"", "null"},
                     {"e", R"({"f":{}})"},
                     {"g", "-2e5"}}));
  EXPECT_EQ(MemberOf(R"({"a":1,"b":2,"a":[3]})", "a"), "[3]");
  EXPECT_EQ(MemberOf(R"({"a":1})", "b"), "");
}

TEST(JsonMembersTest, OfWhatIsNoObjectThereAreNone) {
  for (const char* json : {"", "[1,2]", "7", "\"{\"", "null"}) EXPECT_EQ(Walked(json), Members());
}

// It is not to be asked of such, and stays within its bounds.
TEST(JsonMembersTest, WhatIsNotValidEnds) {
  for (const char* json : {"{", "{\"", "{\"a", "{\"a\\", "{\"a\"", "{\"a\":", "{\"a\":\"",
                           "{\"a\":[", "{\"a\":[\"\\", "{\"a\":1", "{\"a\" 1}", "{a:1}"}) {
    EXPECT_EQ(Walked(json), Members()) << json;
  }
}

std::string RandomValue(std::mt19937_64& random, int depth) {
  const auto below = [&](std::uint64_t bound) { return random() % bound; };
  static const char* kScalars[] = {"0",      "-1.5e-7", "true",    "null",         R"("")",
                                   R"("{")", R"("\\")", R"("\"")", R"("\u00e4]")", "\"\xC3\xA4\""};
  if (depth == 0 || below(3) > 0) return kScalars[below(std::size(kScalars))];
  const bool is_object = below(2) == 0;
  std::string text = is_object ? "{" : "[";
  for (std::uint64_t i = 0, count = below(4); i < count; ++i) {
    if (i > 0) text += below(2) == 0 ? "," : " ,\n";
    if (is_object) text += below(2) == 0 ? R"("n":)" : R"("\"," : )";
    text += RandomValue(random, depth - 1);
  }
  return text + (is_object ? "}" : "]");
}

TEST(JsonMembersTest, IsWhatParsingItAgainTells) {
  std::mt19937_64 random(testing::TestSeed());
  for (int i = 0; i < 20'000; ++i) {
    const std::string value = RandomValue(random, 4);
    Members parsed;
    const bool is_object = ForEachJsonMember(
        value,
        [&](std::string_view name, std::string_view each) { parsed.emplace_back(name, each); });
    ASSERT_EQ(Walked(value), is_object ? parsed : Members()) << value;
  }
}

}  // namespace
}  // namespace stepwell
