#include "server/chunk_check.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "absl/strings/str_cat.h"
#include "server/limits.h"
#include "storage/advance_rules.h"
#include "tests/unit/server/chunk_maker.h"

namespace stepwell {
namespace {

constexpr WriterNo kWriter = static_cast<WriterNo>(3);

ChunkContent Check(const pb::ChunkBody& body) {
  return CheckChunkContent(MakeChunk(1, body), MakeRefs(), kWriter);
}

TEST(ChunkCheckTest, DecodesDoublesIntegersBatchesAndMisses) {
  pb::ChunkBody body = MakeBody(1, {1.5, 2.5, 3.5});
  pb::Table& table = *body.mutable_tables(0);
  table.set_first_batch(7);
  table.add_batch_deltas(1);
  table.add_batch_deltas(-8);
  pb::Column& misses = *table.add_columns();
  misses.set_ref(2);
  misses.set_presence(std::string(1, '\x05'));  // ticks 0 and 2
  misses.add_doubles(10);
  misses.add_doubles(30);
  pb::Table& exact = *body.add_tables();
  exact.set_tick_group(2);
  exact.set_first_time_us(kSealedTimeUs);
  exact.set_first_batch(-1);
  exact.add_columns()->set_ref(3);
  exact.mutable_columns(0)->add_integers(-1234);
  const ChunkContent content = Check(body);
  ASSERT_FALSE(content.rejected.has_value()) << content.rejected->complaint.message;
  ASSERT_EQ(content.decoded.tables.size(), 2U);
  EXPECT_EQ(content.decoded.sample_count, 6);
  const TickTable& first = content.decoded.tables[0];
  EXPECT_EQ(first.times_us,
            (std::vector<std::int64_t>{kSealedTimeUs, kSealedTimeUs + 1000, kSealedTimeUs + 2000}));
  EXPECT_EQ(first.batches, (std::vector<std::int32_t>{7, 8, 0}));
  EXPECT_EQ(Value(first.columns[0].series_no), 11);
  EXPECT_EQ(first.columns[0].values, (std::vector<double>{1.5, 2.5, 3.5}));
  EXPECT_EQ(first.columns[1].presence, (std::vector<std::uint8_t>{1, 0, 1}));
  EXPECT_EQ(first.columns[1].values, (std::vector<double>{10, 30}));
  EXPECT_EQ(content.decoded.tables[1].columns[0].values, (std::vector<double>{-1.234}));
}

struct BadBody {
  const char* name;
  std::function<void(pb::ChunkBody&)> spoil;
  const char* reason;
  const char* part_of_message;
};

class BadBodyTest : public ::testing::TestWithParam<BadBody> {};

TEST_P(BadBodyTest, IsConsumedWithItsReason) {
  pb::ChunkBody body = MakeBody(1, {1, 2, 3});
  GetParam().spoil(body);
  const ChunkContent content = Check(body);
  ASSERT_TRUE(content.rejected.has_value());
  EXPECT_TRUE(content.whole_rejected);
  EXPECT_EQ(content.rejected->complaint.reason, GetParam().reason);
  EXPECT_NE(content.rejected->complaint.message.find(GetParam().part_of_message), std::string::npos)
      << content.rejected->complaint.message;
  EXPECT_TRUE(content.decoded.tables.empty());
  ASSERT_EQ(content.gaps.size(), 1U);
  EXPECT_EQ(content.gaps[0].cause, GapCause::kRejected);
  EXPECT_EQ(content.gaps[0].first_sequence, 1U);
  EXPECT_EQ(content.gaps[0].writer_no, kWriter);
}

pb::Table& First(pb::ChunkBody& body) { return *body.mutable_tables(0); }

// The first column again and again, each time as another ref.
void SetRefs(pb::ChunkBody& body, const std::vector<std::uint32_t>& refs) {
  const pb::Column column = First(body).columns(0);
  First(body).clear_columns();
  for (const std::uint32_t ref : refs) {
    pb::Column& next = *First(body).add_columns();
    next = column;
    next.set_ref(ref);
  }
}

TEST(ChunkCheckTest, RefsMayStandInAnyOrder) {
  pb::ChunkBody body = MakeBody(1, {1, 2, 3});
  SetRefs(body, {4, 2, 1});
  const ChunkContent content = Check(body);
  ASSERT_FALSE(content.whole_rejected);
  const std::vector<TickColumn>& columns = content.decoded.tables.at(0).columns;
  ASSERT_EQ(columns.size(), 2U);
  EXPECT_EQ(Value(columns[0].series_no), 12);
  EXPECT_EQ(Value(columns[1].series_no), 11);
}

INSTANTIATE_TEST_SUITE_P(
    Content, BadBodyTest,
    ::testing::Values(
        BadBody{"unknown_ref", [](auto& b) { First(b).mutable_columns(0)->set_ref(99); },
                "UNKNOWN_REF", "tables[0].columns[0].ref 99 is not defined"},
        BadBody{"no_columns", [](auto& b) { First(b).clear_columns(); }, "COLUMN_COUNT",
                "tables[0] has no columns"},
        BadBody{"ref_twice", [](auto& b) { *First(b).add_columns() = First(b).columns(0); },
                "COLUMN_REPEATED", "stands in this table twice"},
        BadBody{"ref_twice_apart",
                [](auto& b) {
                  SetRefs(b, {1, 2, 1});
                },
                "COLUMN_REPEATED", "columns[2].ref 1 stands in this table twice"},
        BadBody{"ref_twice_out_of_order",
                [](auto& b) {
                  SetRefs(b, {2, 1, 2});
                },
                "COLUMN_REPEATED", "columns[2].ref 2 stands in this table twice"},
        BadBody{"ref_twice_behind_others",
                [](auto& b) {
                  SetRefs(b, {2, 4, 1, 4});
                },
                "COLUMN_REPEATED", "columns[3].ref 4 stands in this table twice"},
        BadBody{"other_tick_group", [](auto& b) { First(b).set_tick_group(2); }, "TICK_GROUP",
                "was defined for tick group 1"},
        BadBody{"too_few_values",
                [](auto& b) { First(b).mutable_columns(0)->mutable_doubles()->RemoveLast(); },
                "VALUE_COUNT", "has 2 values where 3 ticks have a sample"},
        BadBody{"both_forms", [](auto& b) { First(b).mutable_columns(0)->add_integers(1); },
                "COLUMN_FORM", "both doubles and integers"},
        BadBody{"presence_too_long",
                [](auto& b) { First(b).mutable_columns(0)->set_presence("ab"); }, "PRESENCE_BYTES",
                "has 2 bytes for 3 ticks"},
        BadBody{"presence_disagrees",
                [](auto& b) { First(b).mutable_columns(0)->set_presence(std::string(1, '\x01')); },
                "VALUE_COUNT", "has 3 values where 1 ticks"},
        BadBody{"batch_below", [](auto& b) { First(b).set_first_batch(-2); }, "BATCH_RANGE",
                "first_batch is -2"},
        BadBody{"batch_count", [](auto& b) { First(b).add_batch_deltas(1); }, "BATCH_COUNT",
                "has 1 entries for 3 ticks"},
        BadBody{"batch_overflow",
                [](auto& b) {
                  First(b).set_first_batch(std::numeric_limits<std::int32_t>::max());
                  First(b).add_batch_deltas(1);
                  First(b).add_batch_deltas(1);
                },
                "BATCH_RANGE", "make batch 2147483648"},
        BadBody{"time_below", [](auto& b) { First(b).set_first_time_us(kTimeUsMin - 1); },
                "TIME_RANGE", "tick 0"},
        BadBody{
            "time_overflow",
            [](auto& b) { First(b).set_first_time_us(std::numeric_limits<std::int64_t>::max()); },
            "TIME_RANGE", "tick 1"},
        BadBody{"loss_cause", [](auto& b) { b.add_losses()->set_cause(pb::GAP_CAUSE_CLOCK); },
                "GAP_CAUSE", "losses[0].cause is 10"},
        BadBody{"loss_times",
                [](auto& b) {
                  b.add_losses()->set_cause(pb::GAP_CAUSE_LATE);
                  b.mutable_losses(0)->set_first_time_us(2);
                },
                "TIME_RANGE", "losses[0] is from 2 to 0"},
        BadBody{"loss_ref",
                [](auto& b) {
                  b.add_losses()->set_cause(pb::GAP_CAUSE_LATE);
                  b.mutable_losses(0)->set_ref(50);
                },
                "UNKNOWN_REF", "losses[0].ref 50"},
        BadBody{"loss_nul",
                [](auto& b) {
                  b.add_losses()->set_cause(pb::GAP_CAUSE_LATE);
                  b.mutable_losses(0)->set_reason(std::string("a\0b", 3));
                },
                "CONTROL_CHARACTER", "losses[0].reason has a control character at byte 1"},
        BadBody{"too_many_losses",
                [](auto& b) {
                  for (int i = 0; i <= kChunkLossesMax; ++i) b.add_losses();
                },
                "LOSS_COUNT", "1001 losses"},
        BadBody{"too_many_ticks",
                [](auto& b) {
                  for (int i = 0; i < kChunkSamplesMax; ++i) First(b).add_time_deltas_us(1);
                },
                "TICK_COUNT", "at most 65536"},
        BadBody{"days_apart",
                [](auto& b) {
                  for (int i = 3; i < 4097; ++i) {
                    First(b).mutable_columns(0)->add_doubles(i);
                    First(b).add_time_deltas_us(0);
                  }
                  for (std::int64_t& delta : *First(b).mutable_time_deltas_us()) {
                    delta = kDayUs + 1;
                  }
                },
                "TIME_SPREAD",
                "tables[].time_deltas_us spread ticks over 4097 stretches of up to 24 hours with "
                "fewer than 8 ticks each, allowed in a chunk are at most 4096"}),
    [](const auto& row) { return row.param.name; });

TEST(ChunkCheckTest, TooManyBytesAreConsumed) {
  const ChunkContent content = CheckChunkContent(
      MakeChunk(5, std::string(static_cast<std::size_t>(kChunkBytesMax) + 1, 'x')), MakeRefs(),
      kWriter);
  ASSERT_TRUE(content.whole_rejected);
  EXPECT_EQ(content.rejected->complaint.reason, "CHUNK_BYTES");
  EXPECT_EQ(content.gaps[0].last_sequence, 5U);
}

TEST(ChunkCheckTest, BytesThatAreNoBodyAreConsumed) {
  const ChunkContent content = CheckChunkContent(MakeChunk(1, "\xff\xff\xff"), MakeRefs(), kWriter);
  ASSERT_TRUE(content.whole_rejected);
  EXPECT_EQ(content.rejected->complaint.reason, "BODY_MALFORMED");
}

TEST(ChunkCheckTest, SamplesOfARefusedRefAreDroppedAndTheOthersKept) {
  pb::ChunkBody body = MakeBody(1, {1, 2});
  pb::Column& refused = *body.mutable_tables(0)->add_columns();
  refused.set_ref(4);
  refused.add_doubles(8);
  refused.add_doubles(9);
  const ChunkContent content = Check(body);
  EXPECT_FALSE(content.whole_rejected);
  ASSERT_TRUE(content.rejected.has_value());
  EXPECT_EQ(content.rejected->complaint.reason, "SERIES_LIMIT");
  EXPECT_EQ(content.rejected->sample_count, 2);
  EXPECT_EQ(content.decoded.sample_count, 2);
  ASSERT_EQ(content.decoded.tables.size(), 1U);
  EXPECT_EQ(content.decoded.tables[0].columns.size(), 1U);
}

TEST(ChunkCheckTest, AbsurdTimesAreKeptAndFlagged) {
  struct Row {
    const char* name;
    std::int64_t time_us;
    bool flagged;
  };
  for (const Row& row : {Row{"1970", 0, true}, Row{"2262", 9'223'372'036'854'775, true},
                         Row{"a day minus", kSealedTimeUs - kDayUs, false},
                         Row{"a day and more", kSealedTimeUs + kDayUs + 1, true}}) {
    SCOPED_TRACE(row.name);
    pb::ChunkBody body;
    *body.add_tables() = MakeTable(1, {1}, row.time_us);
    const ChunkContent content = Check(body);
    EXPECT_FALSE(content.rejected.has_value());
    EXPECT_EQ(content.decoded.sample_count, 1);
    ASSERT_EQ(content.gaps.size(), row.flagged ? 1U : 0U);
    if (!row.flagged) continue;
    EXPECT_EQ(content.gaps[0].cause, GapCause::kClock);
    EXPECT_EQ(content.gaps[0].sample_count, 0);
    EXPECT_EQ(content.gaps[0].first_time_us, row.time_us);
  }
}

TEST(ChunkCheckTest, LossesBecomeGaps) {
  pb::ChunkBody body;
  pb::Loss& loss = *body.add_losses();
  loss.set_cause(pb::GAP_CAUSE_RING_FULL);
  loss.set_ref(3);
  loss.set_sample_count(17);
  loss.set_first_time_us(5);
  loss.set_last_time_us(9);
  const ChunkContent content = Check(body);
  EXPECT_FALSE(content.rejected.has_value());
  ASSERT_EQ(content.gaps.size(), 1U);
  EXPECT_EQ(content.gaps[0].cause, GapCause::kRingFull);
  EXPECT_EQ(content.gaps[0].metric_group, "cpu");
  EXPECT_EQ(content.gaps[0].sample_count, 17);
  EXPECT_EQ(content.gaps[0].first_sequence, 0U);
}

TEST(ChunkCheckTest, DamageOnTheWayIsNotConsumed) {
  pb::Chunk chunk = MakeChunk(1, MakeBody(1, {1}));
  EXPECT_FALSE(CheckChunkFrame(chunk).has_value());
  chunk.mutable_body()->back() ^= 1;
  ASSERT_TRUE(CheckChunkFrame(chunk).has_value());
  EXPECT_EQ(CheckChunkFrame(chunk)->reason, "CHECKSUM");
  chunk.set_sequence(0);
  EXPECT_EQ(CheckChunkFrame(chunk)->reason, "SEQUENCE_RANGE");
  chunk.set_sequence(std::uint64_t{1} << 63);
  EXPECT_EQ(CheckChunkFrame(chunk)->reason, "SEQUENCE_RANGE");
  chunk.set_sequence((std::uint64_t{1} << 63) - 1);
  EXPECT_EQ(CheckChunkFrame(chunk)->reason, "SEQUENCE_RANGE") << "no store takes it";
}

TEST(ChunkCheckTest, GapRangesAreChecked) {
  pb::GapRange range;
  range.set_first_sequence(4);
  range.set_last_sequence(9);
  range.set_cause(pb::GAP_CAUSE_SPOOL_FULL);
  Gap gap;
  EXPECT_FALSE(CheckGapRange(range, kWriter, gap).has_value());
  EXPECT_EQ(gap.cause, GapCause::kSpoolFull);
  EXPECT_EQ(gap.last_sequence, 9U);
  range.set_last_sequence(3);
  EXPECT_EQ(CheckGapRange(range, kWriter, gap)->reason, "SEQUENCE_RANGE");
  range.set_last_sequence((std::uint64_t{1} << 63) - 1);
  ASSERT_TRUE(CheckGapRange(range, kWriter, gap).has_value()) << "no store takes it";
  EXPECT_EQ(CheckGapRange(range, kWriter, gap)->reason, "SEQUENCE_RANGE");
  range.set_last_sequence(kSequenceMax);
  EXPECT_FALSE(CheckGapRange(range, kWriter, gap).has_value());
}

TEST(ChunkCheckTest, ClientsMayStateAllCausesButTheMastersOwn) {
  pb::GapRange range;
  range.set_first_sequence(4);
  range.set_last_sequence(9);
  for (int cause = 0; cause <= 14; ++cause) {
    SCOPED_TRACE(cause);
    range.set_cause(static_cast<pb::GapCause>(cause));
    Gap gap;
    const auto complaint = CheckGapRange(range, kWriter, gap);
    // 9, 11 and 13 are what an agent passes on: of a chunk given up, of a cap, of a restored master.
    if (cause >= 1 && cause <= 13 && cause != 10) {
      EXPECT_FALSE(complaint.has_value());
      EXPECT_EQ(static_cast<int>(gap.cause), cause);
    } else {
      ASSERT_TRUE(complaint.has_value());
      EXPECT_EQ(complaint->code, absl::StatusCode::kInvalidArgument);
      EXPECT_EQ(complaint->reason, "GAP_CAUSE");
      EXPECT_EQ(
          complaint->message,
          absl::StrCat("gap.cause is ", cause, ", allowed are 1 to 9 and 11 to 13 (see GapCause)"));
    }
  }
}

}  // namespace
}  // namespace stepwell
