#include "server/http/request_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "stepwell/v1/query.pb.h"

namespace stepwell {
namespace {

using absl::StatusCode;

StatusCode CodeOf(const std::string& bytes, std::size_t parts_max) {
  return CheckParts(*v1::QueryBucketsRequest::descriptor(), bytes, parts_max).code();
}

// Counted exactly: with one part fewer it is too many.
void ExpectParts(const google::protobuf::Message& message, std::size_t parts) {
  const std::string bytes = message.SerializeAsString();
  EXPECT_EQ(CodeOf(bytes, parts), StatusCode::kOk) << message.ShortDebugString();
  if (parts > 0) {
    EXPECT_EQ(CodeOf(bytes, parts - 1), StatusCode::kResourceExhausted)
        << message.ShortDebugString();
  }
}

TEST(RequestPartsTest, MessagesTextsAndStrangersAreCounted) {
  v1::QueryBucketsRequest request;
  ExpectParts(request, 0);
  request.set_max_buckets(500);
  ExpectParts(request, 0);
  request.mutable_trial()->set_external_id("a");
  ExpectParts(request, 2);
  request.add_selectors();
  ExpectParts(request, 3);
  (*request.mutable_selectors(0)->mutable_labels())["rank"] = "7";
  ExpectParts(request, 6);  // an entry, its name, its value
  request.add_group_by("rank");
  ExpectParts(request, 7);
  request.GetReflection()->MutableUnknownFields(&request)->AddVarint(1000, 1);
  ExpectParts(request, 8);
  request.GetReflection()->MutableUnknownFields(&request)->AddLengthDelimited(1001)->assign("xyz");
  ExpectParts(request, 9);
}

// Below a stranger's group nothing hides.
TEST(RequestPartsTest, GroupsAreCountedThrough) {
  v1::QueryBucketsRequest request;
  auto* group = request.GetReflection()->MutableUnknownFields(&request)->AddGroup(1000);
  for (int i = 0; i < 10; ++i) group->AddVarint(1001, 1);
  EXPECT_EQ(CodeOf(request.SerializeAsString(), 9), StatusCode::kResourceExhausted);
  EXPECT_EQ(CodeOf(request.SerializeAsString(), 100), StatusCode::kOk);
}

// Nothing else is taken for whole than what protobuf parses: it would be built without a bound.
TEST(RequestPartsTest, WhatIsNoMessageIsTold) {
  std::string nested;
  for (int i = 0; i < 3; ++i)
    nested = absl::StrCat("\x12", std::string(1, static_cast<char>(nested.size())), nested);
  const std::vector<std::string> broken = {
      "\x12",                      // no length
      "\x12\x05\x01",              // a message that is cut off
      "\x12\xff\xff\xff\xff\x0f",  // one of 4 GiB
      "\x28",                      // no number
      std::string("\x00", 1),      // no tag
      "\x12\x02\x0a\x05",          // a text that reaches over its message
  };
  for (const std::string& bytes : broken) {
    SCOPED_TRACE(::testing::PrintToString(bytes));
    v1::QueryBucketsRequest parsed;
    EXPECT_FALSE(parsed.ParseFromString(bytes));
    EXPECT_EQ(CodeOf(bytes, 100), StatusCode::kInvalidArgument);
  }
}

TEST(RequestPartsTest, OfJsonWhatCommasAndBracketsBegin) {
  EXPECT_TRUE(CheckJsonParts(R"({"a": [1, 2, {"b": "x,{[\\\",{["}]})", 5).ok());
  EXPECT_EQ(CheckJsonParts(R"({"a": [1, 2, {"b": "x,{[\\\",{["}]})", 4).code(),
            StatusCode::kResourceExhausted);
  EXPECT_TRUE(CheckJsonParts("\"", 0).ok());
  EXPECT_TRUE(CheckJsonParts("\"\\", 0).ok());
}

}  // namespace
}  // namespace stepwell
