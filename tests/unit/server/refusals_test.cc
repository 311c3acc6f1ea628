// What is refused at a limit: the exact code and message, and that one below the limit is taken.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/steady_time.h"
#include "server/chunk_check.h"
#include "server/definition_check.h"
#include "server/ingest_stream.h"
#include "server/limits.h"
#include "server/recovery.h"
#include "tests/fakes/fake_ingest_store.h"
#include "tests/unit/server/chunk_maker.h"
#include "tests/unit/server/no_folds.h"

namespace stepwell {
namespace {

constexpr WriterNo kWriter = static_cast<WriterNo>(3);

void AddColumns(pb::ChunkBody& body, int ticks) {
  const std::vector<double> values(static_cast<std::size_t>(ticks), 1.0);
  *body.add_tables() = MakeTable(1, values);
  pb::Column& second = *body.mutable_tables(body.tables_size() - 1)->add_columns();
  second.set_ref(2);
  for (const double value : values) second.add_doubles(value);
}

void AddTables(pb::ChunkBody& body, int count) {
  for (int i = 0; i < count; ++i) *body.add_tables() = MakeTable(1, {1.0});
}

void AddLosses(pb::ChunkBody& body, int count) {
  for (int i = 0; i < count; ++i) body.add_losses()->set_cause(pb::GAP_CAUSE_RING_FULL);
}

TEST(RefusalsTest, AChunkHoldsSoMuch) {
  struct Row {
    const char* name;
    std::function<void(pb::ChunkBody&)> fill;
    const char* reason;  // empty: taken
    const char* message;
  };
  const std::vector<Row> rows = {
      {"65536 samples", [](auto& body) { AddColumns(body, 32'768); }, "", ""},
      {"65538 samples", [](auto& body) { AddColumns(body, 32'769); }, "SAMPLE_COUNT",
       "body has 65538 samples, allowed are at most 65536"},
      {"4096 tables", [](auto& body) { AddTables(body, 4096); }, "", ""},
      {"4097 tables", [](auto& body) { AddTables(body, 4097); }, "TABLE_COUNT",
       "body has 4097 tables, allowed are at most 4096"},
      {"1000 losses", [](auto& body) { AddLosses(body, 1000); }, "", ""},
      {"1001 losses", [](auto& body) { AddLosses(body, 1001); }, "LOSS_COUNT",
       "body has 1001 losses, allowed are at most 1000"},
      {"a loss of 2^63",
       [](auto& body) {
         AddLosses(body, 2);
         body.mutable_losses(1)->set_sample_count(std::uint64_t{1} << 63);
       },
       "SAMPLE_COUNT", "losses[1].sample_count is 9223372036854775808, allowed is below 2^63"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    pb::ChunkBody body;
    row.fill(body);
    const ChunkContent content = CheckChunkContent(MakeChunk(1, body), MakeRefs(), kWriter);
    ASSERT_EQ(content.rejected.has_value(), *row.reason != '\0');
    if (!content.rejected) continue;
    EXPECT_EQ(content.rejected->complaint.code, absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(content.rejected->complaint.reason, row.reason);
    EXPECT_EQ(content.rejected->complaint.message, row.message);
  }
}

TEST(RefusalsTest, AGapOfTooManySamples) {
  pb::GapRange range;
  range.set_first_sequence(1);
  range.set_last_sequence(1);
  range.set_cause(pb::GAP_CAUSE_SPOOL_FULL);
  range.set_sample_count(std::uint64_t{1} << 63);
  Gap gap;
  const auto complaint = CheckGapRange(range, kWriter, gap);
  ASSERT_TRUE(complaint.has_value());
  EXPECT_EQ(complaint->code, absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(complaint->reason, "SAMPLE_COUNT");
  EXPECT_EQ(complaint->message, "gap.sample_count is 9223372036854775808, allowed is below 2^63");
  range.set_sample_count((std::uint64_t{1} << 63) - 1);
  EXPECT_FALSE(CheckGapRange(range, kWriter, gap).has_value());
}

pb::Definitions OfKind(int kind) {
  pb::Definitions definitions;
  pb::Definition& definition = *definitions.add_definitions();
  definition.set_ref(1);
  definition.set_tick_group(1);
  definition.set_metric_group("gpu");
  definition.set_name("gpu_util");
  definition.set_kind(static_cast<pb::SeriesKind>(kind));
  return definitions;
}

TEST(RefusalsTest, ASeriesIsOfAKnownKind) {
  for (const int kind : {-1, 4, 99}) {
    SCOPED_TRACE(kind);
    const DefinitionResult result = CheckDefinitions(OfKind(kind), {}, {});
    ASSERT_EQ(result.refused.size(), 1U);
    const Complaint& complaint = result.refused[0].complaint;
    EXPECT_EQ(complaint.code, absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(complaint.reason, "SERIES_KIND");
    EXPECT_EQ(complaint.message,
              absl::StrCat("definitions[0].kind is ", kind,
                           ", allowed are 1 (gauge, also for 0), 2 (counter) and 3 (duration)"));
    EXPECT_TRUE(result.fresh.empty());
  }
}

TEST(RefusalsTest, AKindThatIsNotGivenIsAGauge) {
  const DefinitionResult result = CheckDefinitions(OfKind(pb::SERIES_KIND_UNSPECIFIED), {}, {});
  ASSERT_TRUE(result.refused.empty()) << result.refused[0].complaint.message;
  ASSERT_EQ(result.fresh.size(), 1U);
  EXPECT_EQ(result.fresh[0].definition.kind, SeriesKind::kGauge);
  // The same meaning, said in two ways.
  RefTable refs;
  refs[1] = result.fresh[0].ref;
  EXPECT_TRUE(CheckDefinitions(OfKind(pb::SERIES_KIND_GAUGE), {}, refs).refused.empty());
  EXPECT_EQ(CheckDefinitions(OfKind(pb::SERIES_KIND_COUNTER), {}, refs).refused.size(), 1U);
}

// Enough of a master for a stream.
class WritersPerStreamTest : public ::testing::Test {
 protected:
  WritersPerStreamTest() {
    const auto owner = store_.AcquireOwnership({.master_id = "master-a", .address = "here"});
    state_.SetDatabase(absl::OkStatus());
    state_.BecomeOwner(owner->epoch, false);
    committer_.Start();
    stream_ = *IngestStream::Create(context_, [] {});
  }
  ~WritersPerStreamTest() override {
    stream_->Finish();
    committer_.Stop(SteadyTime::InfinitePast());
  }

  pb::StreamChunksResponse Open(const Uuid& writer) {
    pb::StreamChunksRequest message;
    message.mutable_open()->set_writer(writer.ToBytes());
    message.mutable_open()->set_external_id("trial");
    return Answer(message);
  }
  pb::StreamChunksResponse Answer(const pb::StreamChunksRequest& message) {
    stream_->Handle(message);
    EXPECT_TRUE(stream_->WaitSettled(SteadyTime::Now() + absl::Seconds(10)));
    pb::StreamChunksResponse answer;
    EXPECT_TRUE(stream_->board().TakeNext(answer));
    return answer;
  }

  testing::FakeIngestStore store_;
  Heads heads_;
  MasterState state_;
  IngestStats stats_;
  WriterRegistry registry_{RealClock::Get()};
  WriterDirector director_{RealClock::Get()};
  CommitQueue queue_{{}};
  GroupCommitter committer_{{}, {store_, queue_, heads_, state_, stats_, RealClock::Get()}};
  const IngestContext context_{store_, queue_,    heads_,    state_,
                               stats_, registry_, director_, RealClock::Get()};
  std::shared_ptr<IngestStream> stream_;
};

TEST_F(WritersPerStreamTest, TheNextOneIsSentToAnotherStream) {
  std::vector<Uuid> writers;
  for (int i = 0; i < kWritersPerStreamMax; ++i) {
    writers.push_back(Uuid::Random());
    ASSERT_TRUE(Open(writers.back()).has_opened()) << i;
  }
  const Uuid late = Uuid::Random();
  const pb::StreamChunksResponse answer = Open(late);
  ASSERT_TRUE(answer.has_refused());
  const pb::Refused& refused = answer.refused();
  EXPECT_EQ(refused.writer(), late.ToBytes());
  EXPECT_EQ(refused.code(), static_cast<int>(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(refused.reason(), "WRITERS_PER_STREAM");
  EXPECT_EQ(refused.message(),
            "the stream holds 256 writers, which is the limit; use another stream");
  EXPECT_TRUE(refused.terminal());
  EXPECT_EQ(refused.retry_delay_ms(), 1000);
  EXPECT_TRUE(Open(writers[7]).has_opened()) << "one that has its place may open again";

  pb::StreamChunksRequest close;
  close.mutable_close()->set_writer(writers[3].ToBytes());
  EXPECT_TRUE(Answer(close).ack().closed());
  EXPECT_TRUE(Open(late).has_opened()) << "a closed one gives up its place";
}

}  // namespace
}  // namespace stepwell
