// Invariant: what a message takes is known before it is parsed, by what it is and by its parts.
#include "server/message_need.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <string>

#include "proto/request_bound.h"
#include "stepwell/v1/ingest.pb.h"

namespace stepwell {
namespace {

MessageNeed NeedOfBytes(const std::string& bytes, int piece = -1) {
  google::protobuf::io::ArrayInputStream in(bytes.data(), static_cast<int>(bytes.size()), piece);
  return NeedOf(in, bytes.size());
}

TEST(MessageNeedTest, AChunkTakesItsBytesSomeTimes) {
  v1::StreamChunksRequest message;
  message.mutable_chunk()->set_body(std::string(1 << 20, 'x'));
  const std::string bytes = message.SerializeAsString();
  for (const int piece : {-1, 1, 16 << 10}) {
    const MessageNeed need = NeedOfBytes(bytes, piece);
    EXPECT_TRUE(need.may.ok());
    EXPECT_TRUE(need.is_chunk);
    EXPECT_GE(need.bytes, 4 << 20);
    EXPECT_LT(need.bytes, (4 << 20) + 4096);
  }
}

TEST(MessageNeedTest, SmallOnesNeedLittle) {
  v1::StreamChunksRequest message;
  message.mutable_chunk()->set_body(std::string(15 << 10, 'x'));
  EXPECT_LE(NeedOfBytes(message.SerializeAsString()).bytes, kSmallNeedBytes);
  message.mutable_heartbeat();
  EXPECT_LE(NeedOfBytes(message.SerializeAsString()).bytes, kSmallNeedBytes);
  EXPECT_EQ(NeedOfBytes("").bytes, 0);
}

TEST(MessageNeedTest, DefinitionsTakeWhatIsBuiltOfThem) {
  v1::StreamChunksRequest message;
  for (int i = 0; i < 1000; ++i) message.mutable_definitions()->add_definitions();
  const MessageNeed need = NeedOfBytes(message.SerializeAsString());
  EXPECT_TRUE(need.may.ok());
  EXPECT_FALSE(need.is_chunk);
  EXPECT_GT(need.bytes, static_cast<std::int64_t>(1000 * kMessageBuiltBytes));
}

// Millions of empty ones in four megabytes would be hundreds of them.
TEST(MessageNeedTest, WhatWouldBecomeTooMuchIsSaid) {
  v1::StreamChunksRequest message;
  for (int i = 0; i < 500'000; ++i) message.mutable_definitions()->add_definitions();
  const std::string bytes = message.SerializeAsString();
  ASSERT_LT(bytes.size(), 4U << 20);
  EXPECT_TRUE(absl::IsResourceExhausted(NeedOfBytes(bytes).may));
  EXPECT_TRUE(absl::IsInvalidArgument(NeedOfBytes("\x0a\x05zz").may));
}

}  // namespace
}  // namespace stepwell
