#include "proto/request_bound.h"

#include <gmock/gmock.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "stepwell/v1/ingest.pb.h"
#include "stepwell/v1/query.pb.h"

namespace stepwell {
namespace {

using absl::StatusCode;

// In pieces of `piece` bytes, as gRPC has them.
StatusCode CodeOf(const std::string& bytes, std::size_t most, int piece = -1) {
  google::protobuf::io::ArrayInputStream in(bytes.data(), static_cast<int>(bytes.size()), piece);
  return CheckRequest(*v1::QueryBucketsRequest::descriptor(), in, most).code();
}

// Counted exactly: with a byte fewer it is too much.
void ExpectBuilt(const google::protobuf::Message& message, std::size_t built) {
  SCOPED_TRACE(message.ShortDebugString());
  const std::string bytes = message.SerializeAsString();
  for (const int piece : {-1, 1, 3}) {
    EXPECT_EQ(CodeOf(bytes, built, piece), StatusCode::kOk);
    if (built > 0) {
      EXPECT_EQ(CodeOf(bytes, built - 1, piece), StatusCode::kResourceExhausted);
    }
  }
}

TEST(RequestBoundTest, MessagesLabelsTextsAndStrangersCount) {
  v1::QueryBucketsRequest request;
  ExpectBuilt(request, 0);
  request.set_max_buckets(500);
  ExpectBuilt(request, 0);
  request.mutable_trial()->set_external_id("a");
  std::size_t built = kMessageBuiltBytes + kTextBuiltBytes;
  ExpectBuilt(request, built);
  request.add_selectors();
  ExpectBuilt(request, built += kMessageBuiltBytes);
  (*request.mutable_selectors(0)->mutable_labels())["rank"] = "7";
  ExpectBuilt(request, built += kLabelBuiltBytes + 2 * kTextBuiltBytes);
  request.add_group_by("rank");
  ExpectBuilt(request, built += kTextBuiltBytes);
  auto* unknown = request.GetReflection()->MutableUnknownFields(&request);
  unknown->AddVarint(1000, 1);
  ExpectBuilt(request, built += kUnknownBuiltBytes);
  unknown->AddLengthDelimited(1001)->assign("xyz");
  ExpectBuilt(request, built += kUnknownBuiltBytes);
}

// Below a stranger's group nothing hides.
TEST(RequestBoundTest, GroupsAreCountedThrough) {
  v1::QueryBucketsRequest request;
  auto* group = request.GetReflection()->MutableUnknownFields(&request)->AddGroup(1000);
  for (int i = 0; i < 10; ++i) group->AddVarint(1001, 1);
  const std::string bytes = request.SerializeAsString();
  EXPECT_EQ(CodeOf(bytes, 10 * kUnknownBuiltBytes - 1), StatusCode::kResourceExhausted);
  EXPECT_EQ(CodeOf(bytes, 100 * kUnknownBuiltBytes), StatusCode::kOk);
}

// A field that has another form than its own is kept as a stranger's, though its number is known.
TEST(RequestBoundTest, KnownNumbersOfAnotherFormCount) {
  for (const std::string& field : std::vector<std::string>{
           "\x13\x14",                       // a group
           std::string("\x10\x00", 2),       // a number
           "\x15" + std::string(4, '\x01'),  // four bytes
           "\x11" + std::string(8, '\x01'),  // eight
       }) {
    SCOPED_TRACE(::testing::PrintToString(field));
    std::string bytes;
    for (int i = 0; i < 10; ++i) bytes += field;
    v1::QueryBucketsRequest parsed;
    ASSERT_TRUE(parsed.ParseFromString(bytes));
    EXPECT_EQ(CodeOf(bytes, 10 * kUnknownBuiltBytes - 1), StatusCode::kResourceExhausted);
    EXPECT_EQ(CodeOf(bytes, 10 * kUnknownBuiltBytes), StatusCode::kOk);
  }
}

// What is taken for whole and is not would be built up to where it ends, without a bound.
TEST(RequestBoundTest, WhatIsNoMessageIsTold) {
  for (const std::string& bytes : std::vector<std::string>{
           "\x12",                      // no length
           "\x12\x05\x01",              // a message that is cut off
           "\x12\xff\xff\xff\xff\x0f",  // one of 4 GiB
           "\x28",                      // no number
           std::string("\x00", 1),      // no tag
           "\x12\x02\x0a\x05",          // a text that reaches over its message
       }) {
    SCOPED_TRACE(::testing::PrintToString(bytes));
    v1::QueryBucketsRequest parsed;
    EXPECT_FALSE(parsed.ParseFromString(bytes));
    for (const int piece : {-1, 1}) {
      EXPECT_EQ(CodeOf(bytes, 1 << 20, piece), StatusCode::kInvalidArgument);
    }
  }
}

// protobuf would take it for no message, and not say why.
TEST(RequestBoundTest, TextsThatAreNoneAreTold) {
  const std::string group = "\x12\x04\x0a\x02\xff\xfe";  // a selector's
  google::protobuf::io::ArrayInputStream in(group.data(), static_cast<int>(group.size()));
  const absl::Status told = CheckRequest(*v1::QueryBucketsRequest::descriptor(), in, 1 << 20);
  EXPECT_EQ(told.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(told.message(),
            "stepwell.v1.SeriesSelector.metric_group is not valid UTF-8, which texts are");
  for (const int piece : {1, 3}) {
    EXPECT_EQ(CodeOf("\x12\x04\x0a\x02\xc3\xa9", 1 << 20, piece), StatusCode::kOk) << "cut within";
  }
}

// The dearest that a writer and a reader may ask in earnest.
TEST(RequestBoundTest, WhatTheContractAllowsIsBuilt) {
  v1::QueryBucketsRequest question;
  for (int i = 0; i < 1000; ++i) {
    v1::SeriesSelector& selector = *question.add_selectors();
    selector.set_metric_group("gpu");
    selector.set_name("gpu_util");
    for (int label = 0; label < 32; ++label) {
      (*selector.mutable_labels())[std::to_string(label)] = std::to_string(i);
    }
  }
  EXPECT_TRUE(CheckRequest(*question.GetDescriptor(), question.SerializeAsString()).ok());
  EXPECT_EQ(BuiltBytesMax(*v1::WriteChunksRequest::descriptor()), kDefiningBuiltBytesMax);
  EXPECT_GE(kDefiningBuiltBytesMax, 10'000 * (kMessageBuiltBytes + 5 * kTextBuiltBytes +
                                              32 * (kLabelBuiltBytes + 2 * kTextBuiltBytes)));
}

}  // namespace
}  // namespace stepwell
