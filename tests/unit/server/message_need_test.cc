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
  const auto bytes_of = [&] {
    return google::protobuf::io::ArrayInputStream(bytes.data(), static_cast<int>(bytes.size()),
                                                  piece);
  };
  auto in = bytes_of();
  MessageNeed need = NeedOf(in, bytes.size());
  auto again = bytes_of();
  need.head = HeadOf(again);
  return need;
}

TEST(MessageNeedTest, AChunkTakesItsBytesSomeTimes) {
  v1::StreamChunksRequest message;
  message.mutable_chunk()->set_body(std::string(1 << 20, 'x'));
  const std::string bytes = message.SerializeAsString();
  for (const int piece : {-1, 1, 16 << 10}) {
    const MessageNeed need = NeedOfBytes(bytes, piece);
    EXPECT_TRUE(need.may.ok());
    EXPECT_TRUE(need.head.is_chunk);
    EXPECT_FALSE(need.is_small());
    EXPECT_GE(need.bytes(), 4 << 20);
    EXPECT_LT(need.bytes(), (4 << 20) + 4096);
  }
}

TEST(MessageNeedTest, SmallOnesNeedLittle) {
  v1::StreamChunksRequest message;
  message.mutable_chunk()->set_body(std::string(15 << 10, 'x'));
  EXPECT_TRUE(NeedOfBytes(message.SerializeAsString()).is_small());
  message.mutable_heartbeat();
  EXPECT_TRUE(NeedOfBytes(message.SerializeAsString()).is_small());
  EXPECT_EQ(NeedOfBytes("").bytes(), 0);
}

TEST(MessageNeedTest, DefinitionsTakeWhatIsBuiltOfThem) {
  v1::StreamChunksRequest message;
  for (int i = 0; i < 1000; ++i) message.mutable_definitions()->add_definitions();
  const MessageNeed need = NeedOfBytes(message.SerializeAsString());
  EXPECT_TRUE(need.may.ok());
  EXPECT_FALSE(need.head.is_chunk);
  EXPECT_GT(need.bytes(), static_cast<std::int64_t>(1000 * kMessageBuiltBytes));
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

// Whoever names a chunk first and something else behind it does not get that into the chunks' room; who pays is the writer
// that the parsed message has.
TEST(MessageNeedTest, TheHeadIsThatOfTheParsedMessage) {
  const auto part = [](pb::StreamChunksRequest::MessageCase kind, const std::string& writer) {
    pb::StreamChunksRequest message;
    if (kind == pb::StreamChunksRequest::kChunk) {
      message.mutable_chunk()->set_body("body");
      message.mutable_chunk()->set_writer(writer);
    } else {
      message.mutable_definitions()->add_definitions()->set_name("name");
      message.mutable_definitions()->set_writer(writer);
    }
    return message.SerializeAsString();
  };
  const auto kChunk = pb::StreamChunksRequest::kChunk;
  const auto kDefinitions = pb::StreamChunksRequest::kDefinitions;
  const std::string stranger("\xf8\x07\x05", 3);  // field 127
  const struct {
    std::string bytes;
    bool is_chunk;
  } rows[] = {
      {"", false},
      {stranger, false},
      {part(kChunk, "a"), true},
      {stranger + part(kChunk, "a") + stranger, true},
      {part(kDefinitions, "a"), false},
      {part(kChunk, "a") + part(kDefinitions, "b"), false},
      {part(kDefinitions, "a") + part(kChunk, "b"), false},
      {part(kChunk, "a") + part(kDefinitions, "") + part(kChunk, ""), false},
      {part(kChunk, "a") + part(kChunk, ""), true},
      {part(kChunk, "a") + part(kChunk, "b"), true},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(&row - rows);
    for (const int piece : {-1, 1}) {
      pb::StreamChunksRequest parsed;
      ASSERT_TRUE(parsed.ParseFromString(row.bytes));
      const MessageHead head = NeedOfBytes(row.bytes, piece).head;
      EXPECT_EQ(head.kind, parsed.message_case());
      EXPECT_EQ(head.is_chunk, row.is_chunk);
      EXPECT_EQ(head.writer,
                parsed.has_chunk() ? parsed.chunk().writer() : parsed.definitions().writer());
    }
  }
  // What is none ends where it ends.
  const std::string whole = part(kChunk, std::string(16, 'w'));
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) NeedOfBytes(whole.substr(0, bytes));
  EXPECT_EQ(NeedOfBytes(part(kChunk, std::string(1000, 'w'))).head.writer, "");
}

}  // namespace
}  // namespace stepwell
