// Hostile input beside a healthy writer: each answered with a precise reason, nobody else harmed.
#include <bit>

#include "stepwell/v1/query.grpc.pb.h"
#include "tests/e2e/spine.h"

namespace stepwell::testing {
namespace {

std::optional<v1::Refused> WaitRefused(RawStream& stream) {
  const auto answer = stream.WaitFor([](const auto& message) { return message.has_refused(); });
  return answer ? std::optional(answer->refused()) : std::nullopt;
}

struct Hostile {
  const char* name;
  v1::StreamChunksRequest message;
  absl::StatusCode code;
  const char* reason;
  std::string text;
};

class HostileTest : public SpineTest {
 protected:
  // A healthy writer on the hostile one's own stream.
  void ExpectHealthy(RawStream& stream) {
    ++healthy_sequence_;
    ASSERT_TRUE(stream.Send(
        ChunkMessage(healthy_, healthy_sequence_, OneColumn(1, NowUs(), 1000, {1.0, 2.0}))));
    ASSERT_TRUE(stream.WaitAck(healthy_, healthy_sequence_).has_value()) << master_->LogTail();
  }

  // Not taken: the sequence stays.
  void ExpectRefused(RawStream& stream, const Hostile& hostile) {
    SCOPED_TRACE(hostile.name);
    ASSERT_TRUE(stream.Send(hostile.message));
    const auto refused = WaitRefused(stream);
    ASSERT_TRUE(refused.has_value()) << master_->LogTail();
    EXPECT_EQ(static_cast<absl::StatusCode>(refused->code()), hostile.code);
    EXPECT_EQ(refused->reason(), hostile.reason);
    EXPECT_EQ(refused->message(), hostile.text);
    ExpectHealthy(stream);
  }

  // Consumed: the sequence moves, the reason comes with the ack.
  void ExpectRejected(RawStream& stream, const std::string& name, const std::string& body,
                      const std::string& reason, const std::string& text) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(stream.Send(ChunkMessage(hostile_, ++hostile_sequence_, body)));
    const auto ack = stream.WaitAck(hostile_, hostile_sequence_);
    ASSERT_TRUE(ack.has_value()) << master_->LogTail();
    ASSERT_EQ(ack->rejections_size(), 1);
    EXPECT_EQ(ack->rejections(0).first_sequence(), hostile_sequence_);
    EXPECT_EQ(ack->rejections(0).reason(), reason);
    EXPECT_EQ(ack->rejections(0).message(), text);
    ExpectHealthy(stream);
  }

  // One chunk of the hostile writer that is as legal as any.
  void ExpectTaken(RawStream& stream, const v1::ChunkBody& body) {
    ASSERT_TRUE(stream.Send(ChunkMessage(hostile_, ++hostile_sequence_, body)));
    const auto ack = stream.WaitAck(hostile_, hostile_sequence_);
    ASSERT_TRUE(ack.has_value()) << master_->LogTail();
    EXPECT_EQ(ack->rejections_size(), 0);
    ExpectHealthy(stream);
  }

  const Uuid healthy_ = Uuid::Random();
  const Uuid hostile_ = Uuid::Random();
  std::uint64_t healthy_sequence_ = 0;
  std::uint64_t hostile_sequence_ = 0;
};

TEST_F(HostileTest, WhatCannotBeTakenIsRefusedWithItsReason) {
  StartMaster();
  RawStream stream(*client_);
  const std::int64_t trial_id = Open(stream, healthy_, "healthy").trial_id();
  Open(stream, hostile_, "hostile", 1);
  v1::StreamChunksRequest damaged =
      ChunkMessage(hostile_, 1, OneColumn(1, NowUs(), 1, {1}), 1'700'000'000'000'000);
  const std::uint32_t right = damaged.chunk().crc32c();
  damaged.mutable_chunk()->set_crc32c(right ^ 1);
  v1::StreamChunksRequest bomb = DefinitionMessage(hostile_, {{.ref = 5, .name = "bomb"}});
  for (int i = 0; i < 10'000; ++i) {
    (*bomb.mutable_definitions()->mutable_definitions(0)->mutable_labels())[absl::StrCat("l", i)] =
        "v";
  }
  v1::StreamChunksRequest long_label = DefinitionMessage(hostile_, {{.ref = 6, .name = "long"}});
  (*long_label.mutable_definitions()->mutable_definitions(0)->mutable_labels())["l"] =
      std::string(1025, 'v');
  v1::StreamChunksRequest nul = DefinitionMessage(hostile_, {{.ref = 7}});
  nul.mutable_definitions()->mutable_definitions(0)->set_name(std::string("a\0b", 3));
  v1::StreamChunksRequest hole_to_nowhere;
  hole_to_nowhere.mutable_gap()->set_writer(hostile_.ToBytes());
  hole_to_nowhere.mutable_gap()->set_first_sequence(5);
  hole_to_nowhere.mutable_gap()->set_last_sequence(4);
  const v1::ChunkBody good = OneColumn(1, NowUs(), 1, {1});
  for (const Hostile& hostile : {
           Hostile{"a hole", ChunkMessage(hostile_, 7, good), absl::StatusCode::kFailedPrecondition,
                   "SEQUENCE_HOLE", "sequence 7 came where 1 is expected; send from there"},
           Hostile{"sequence 0", ChunkMessage(hostile_, 0, good),
                   absl::StatusCode::kInvalidArgument, "SEQUENCE_RANGE",
                   "chunk.sequence is 0, allowed are 1 to 2^63 - 2"},
           Hostile{"a bit on the way", damaged, absl::StatusCode::kDataLoss, "CHECKSUM",
                   absl::StrCat("chunk.crc32c is ", right ^ 1, ", its bytes have ", right,
                                "; send the chunk again")},
           Hostile{"nobody's chunk", ChunkMessage(Uuid::Random(), 1, good),
                   absl::StatusCode::kFailedPrecondition, "NOT_OPEN",
                   "the writer is not open on this stream; send Open first"},
           Hostile{"nothing at all", v1::StreamChunksRequest(), absl::StatusCode::kInvalidArgument,
                   "MESSAGE_UNKNOWN",
                   "the message is empty or of a kind unknown here; allowed are open, definitions,"
                   " chunk, gap, heartbeat, close, capture_report, credential"},
           Hostile{"a trial of nobody",
                   OpenMessage({.writer = Uuid::Random(), .trial_id = 1'999'999'999}),
                   absl::StatusCode::kNotFound, "TRIAL_NOT_FOUND",
                   "open.trial_id 1999999999 was not given by this master; allowed are 1 to"
                   " 999999999 and numbers that it gave"},
           Hostile{"a label bomb", bomb, absl::StatusCode::kInvalidArgument, "LABEL_COUNT",
                   "definitions[0].labels has 10000 entries, allowed are at most 32"},
           Hostile{"a long label", long_label, absl::StatusCode::kInvalidArgument,
                   "LABEL_VALUE_BYTES",
                   "definitions[0].labels[l] has 1025 bytes, allowed are 0 to 1024"},
           Hostile{"NUL", nul, absl::StatusCode::kInvalidArgument, "CONTROL_CHARACTER",
                   "definitions[0].name has a control character at byte 1; allowed is UTF-8 text "
                   "without control characters"},
           Hostile{"another meaning", DefinitionMessage(hostile_, {{.ref = 1, .name = "other"}}),
                   absl::StatusCode::kInvalidArgument, "REF_REDEFINED",
                   "definitions[0].ref 1 is already defined otherwise; allowed is the same "
                   "definition again, or another ref"},
           Hostile{"a gap backwards", hole_to_nowhere, absl::StatusCode::kInvalidArgument,
                   "SEQUENCE_RANGE",
                   "gap is from 5 to 4, allowed is 1 <= first <= last <= 2^63 - 2"},
       }) {
    ExpectRefused(stream, hostile);
  }
  // None of them moved the writer.
  ExpectTaken(stream, good);
  ASSERT_TRUE(client_->Flush().ok());
  EXPECT_EQ(Samples(trial_id, "value").size(), 2 * healthy_sequence_);
}

TEST_F(HostileTest, WhatCannotBeStoredIsConsumedWithItsReason) {
  StartMaster();
  RawStream stream(*client_);
  const std::int64_t trial_id = Open(stream, healthy_, "healthy").trial_id();
  const std::int64_t hostile_trial = Open(stream, hostile_, "hostile", 1).trial_id();
  v1::StreamChunksRequest bomb = DefinitionMessage(hostile_, {{.ref = 5, .name = "bomb"}});
  for (int i = 0; i < 33; ++i) {
    (*bomb.mutable_definitions()->mutable_definitions(0)->mutable_labels())[absl::StrCat("l", i)] =
        "v";
  }
  ASSERT_TRUE(stream.Send(bomb));
  ASSERT_TRUE(WaitRefused(stream).has_value());
  const auto body = [](std::uint32_t ref, std::int64_t time_us, std::vector<double> values) {
    return OneColumn(ref, time_us, 1, values).SerializeAsString();
  };
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  struct Row {
    const char* name;
    std::string body;
    const char* reason;
    const char* text;
  };
  for (const Row& row : {
           Row{"an unknown ref", body(42, NowUs(), {1}), "UNKNOWN_REF",
               "tables[0].columns[0].ref 42 is not defined for this writer; allowed are refs that"
               " Definitions named before"},
           Row{"a byte too many", std::string((1 << 20) + 1, 'x'), "CHUNK_BYTES",
               "chunk.body has 1048577 bytes, allowed are at most 1048576"},
           Row{"far too many bytes", std::string(6 << 20, 'x'), "CHUNK_BYTES",
               "chunk.body has 6291456 bytes, allowed are at most 1048576"},
           Row{"no message", "\xFF\xFF", "BODY_MALFORMED",
               "chunk.body is no serialised ChunkBody with valid UTF-8 text"},
           Row{"beyond all calendars", body(1, kMax, {1, 2}), "TIME_RANGE",
               "tables[0]: the time of tick 1 lies outside of what timestamptz holds, 4713 BC to"
               " 294247 AD"},
           Row{"of the bomb", body(5, NowUs(), {1}), "LABEL_COUNT",
               "the definition of the samples' ref was refused"},
       }) {
    ExpectRejected(stream, row.name, row.body, row.reason, row.text);
  }
  ASSERT_TRUE(client_->Flush().ok());
  EXPECT_EQ(Samples(trial_id, "value").size(), 2 * healthy_sequence_);
  EXPECT_EQ(Samples(hostile_trial, "value").size(), 0U);
  EXPECT_EQ(QueryNumber("select count(*) from stepwell.gaps where trial_id = $1 and cause = 9",
                        hostile_trial),
            static_cast<std::int64_t>(hostile_sequence_));
}

TEST_F(HostileTest, StampsOf1970And2262AreKeptAsGivenAndFlagged) {
  StartMaster();
  RawStream stream(*client_);
  Open(stream, healthy_, "healthy");
  const std::int64_t trial_id = Open(stream, hostile_, "hostile", 1).trial_id();
  constexpr std::int64_t k2262 = 9'223'372'036'854'775;
  ExpectTaken(stream, OneColumn(1, 0, 1, {1970}));
  ExpectTaken(stream, OneColumn(1, k2262, 1, {2262}));
  // A repeat is acked, not stored.
  ASSERT_TRUE(stream.Send(ChunkMessage(hostile_, 1, OneColumn(1, 0, 1, {1970}))));
  ASSERT_TRUE(stream.WaitAck(hostile_, 2).has_value());
  ExpectHealthy(stream);
  ASSERT_TRUE(client_->Flush().ok());
  const auto kept = Samples(trial_id, "value");
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_EQ(kept[0].time_us, 0);
  EXPECT_EQ(kept[0].value, 1970);
  EXPECT_EQ(kept[1].time_us, k2262);
  EXPECT_EQ(kept[1].value, 2262);
  EXPECT_GE(QueryNumber("select count(*) from stepwell.gaps where trial_id = $1 and cause = 10",
                        trial_id),
            1);
}

TEST_F(HostileTest, EveryDoubleIsLegalAndComesBackAsItWas) {
  StartMaster();
  RawStream stream(*client_);
  Open(stream, healthy_, "healthy");
  Open(stream, hostile_, "hostile", 1);
  const std::vector<double> odd = {std::bit_cast<double>(std::uint64_t{0x7FF8000000000001}),
                                   std::bit_cast<double>(std::uint64_t{0xFFF8DEADBEEF0000}),
                                   std::numeric_limits<double>::infinity(),
                                   -std::numeric_limits<double>::infinity(),
                                   -0.0,
                                   0.0,
                                   std::numeric_limits<double>::denorm_min()};
  ExpectTaken(stream, OneColumn(1, NowUs(), 1, odd));
  const auto read = [&] {
    const auto query = v1::QueryService::NewStub(client_->channel());
    grpc::ClientContext context;
    v1::ReadSamplesRequest request;
    request.mutable_trial()->set_external_id("hostile");
    const auto reader = query->ReadSamples(&context, request);
    std::vector<std::uint64_t> bits;
    v1::ReadSamplesResponse response;
    while (reader->Read(&response)) {
      for (const double value : response.values()) {
        bits.push_back(std::bit_cast<std::uint64_t>(value));
      }
    }
    EXPECT_TRUE(reader->Finish().ok());
    return bits;
  };
  std::vector<std::uint64_t> sent;
  for (const double value : odd) sent.push_back(std::bit_cast<std::uint64_t>(value));
  EXPECT_EQ(read(), sent) << "from memory";
  ASSERT_TRUE(client_->Flush().ok());
  EXPECT_EQ(read(), sent) << "from a row";
}

TEST_F(HostileTest, TextThatIsNotUtf8IsNamedAndTheStreamGoesOn) {
  StartMaster();
  RawStream stream(*client_);
  Open(stream, healthy_, "healthy");
  // definitions{writer, definitions{name}} with one byte that is no UTF-8; protobuf will not write
  // it as a field, so it goes out as one that is unknown.
  const std::string definition = absl::StrCat("\x12", std::string(1, '\x03'), "\x22\x01\xFF");
  const std::string inner = absl::StrCat("\x0A\x10", healthy_.ToBytes(), definition);
  ASSERT_TRUE(stream.SendBytes(
      absl::StrCat("\x12", std::string(1, static_cast<char>(inner.size())), inner)));
  const auto refused = WaitRefused(stream);
  ASSERT_TRUE(refused.has_value()) << master_->LogTail();
  EXPECT_EQ(static_cast<absl::StatusCode>(refused->code()), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refused->reason(), "INVALID_UTF8");
  EXPECT_EQ(refused->message(), "definitions.definitions.name is not valid UTF-8");
  EXPECT_EQ(refused->writer(), healthy_.ToBytes());
  EXPECT_FALSE(refused->terminal());
  ExpectHealthy(stream);
}

}  // namespace
}  // namespace stepwell::testing
