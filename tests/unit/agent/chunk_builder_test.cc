#include "client/agent/chunk_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace stepwell::agent {
namespace {

using ::testing::ElementsAre;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

class ChunkBuilderTest : public ::testing::Test {
 protected:
  std::uint32_t Ref(const std::string& name, std::uint64_t divisor = 1,
                    TickGroupKey group = {TickGroupKind::kStep, 0}) {
    return catalog_.Ref(group, {"timing", name, {}, "seconds", pb::SERIES_KIND_GAUGE, divisor});
  }
  pb::ChunkBody SealOne() {
    const std::vector<ChunkBuilder::Body> bodies = builder_.Seal();
    EXPECT_EQ(bodies.size(), 1u);
    pb::ChunkBody body;
    EXPECT_TRUE(body.ParseFromString(bodies.front().bytes));
    span_ = bodies.front().span;
    return body;
  }
  void Tick(std::uint32_t group, std::int64_t time_us, std::int32_t batch,
            std::vector<RefValue> values) {
    builder_.AddTick(group, time_us, batch, values);
  }

  SeriesCatalog catalog_;
  ChunkBuilder builder_{catalog_};
  SampleSpan span_;
};

// A master takes 4096 tables per chunk, and a series recorded alone has a table of its own.
TEST_F(ChunkBuilderTest, ABodyIsClosedBeforeItHasTooManyTables) {
  constexpr int kCount = 5000;
  for (int i = 0; i < kCount; ++i) {
    const std::uint32_t ref = Ref("norm" + std::to_string(i), 1, {TickGroupKind::kAlone, 0});
    builder_.AddSample(ref, 1'700'000'000'000'000 + i, 7, i + 0.5);
  }
  int table_count = 0;
  const std::vector<ChunkBuilder::Body> bodies = builder_.Seal();
  EXPECT_EQ(bodies.size(), 2u);
  for (const ChunkBuilder::Body& sealed : bodies) {
    pb::ChunkBody body;
    ASSERT_TRUE(body.ParseFromString(sealed.bytes));
    EXPECT_LE(body.tables_size(), 4096);
    table_count += body.tables_size();
  }
  EXPECT_EQ(table_count, kCount);
}

TEST_F(ChunkBuilderTest, TicksShareTimesAndBatchesAndAbsenceIsABit) {
  const std::uint32_t a = Ref("a");
  const std::uint32_t b = Ref("b");
  Tick(1, 100, 5, {{a, 1}, {b, 2}});
  Tick(1, 107, 6, {{a, 3}});
  Tick(1, 103, 4, {{a, 4}, {b, 5}});
  const pb::ChunkBody body = SealOne();
  ASSERT_EQ(body.tables_size(), 1);
  const pb::Table& table = body.tables(0);
  EXPECT_EQ(table.first_time_us(), 100);
  EXPECT_THAT(table.time_deltas_us(), ElementsAre(7, -4));
  EXPECT_EQ(table.first_batch(), 5);
  EXPECT_THAT(table.batch_deltas(), ElementsAre(1, -2));
  EXPECT_THAT(table.columns(0).integers(), ElementsAre(1, 3, 4));
  EXPECT_EQ(table.columns(0).presence(), "");
  EXPECT_THAT(table.columns(1).integers(), ElementsAre(2, 5));
  EXPECT_EQ(table.columns(1).presence(), std::string(1, '\5'));
  EXPECT_EQ(span_.sample_count, 5u);
  EXPECT_EQ(span_.first_time_us, 100);
  EXPECT_EQ(span_.last_time_us, 107);
  EXPECT_TRUE(builder_.empty());
}

TEST_F(ChunkBuilderTest, OneBatchForAllIsToldOnce) {
  const std::uint32_t a = Ref("a");
  for (std::int64_t i = 0; i < 5; ++i) Tick(1, i, -1, {{a, 0.5}});
  const pb::ChunkBody body = SealOne();
  EXPECT_EQ(body.tables(0).first_batch(), -1);
  EXPECT_EQ(body.tables(0).batch_deltas_size(), 0);
}

struct ValueRow {
  const char* name;
  std::uint64_t divisor;
  double value;
  bool is_integer;
};

TEST_F(ChunkBuilderTest, IntegersOnlyWhereTheyAreExact) {
  const ValueRow rows[] = {
      {"whole", 1, 42, true},
      {"negative", 1, -42, true},
      {"half", 1, 0.5, false},
      {"half of two", 2, 0.5, true},
      {"nanoseconds", 1'000'000'000, 1234567891.0 / 1e9, true},
      {"a third of nanoseconds", 1'000'000'000, 1.0 / 3, false},
      {"hundredths", 100, 12.34, true},
      {"nan", 1, kNan, false},
      {"infinity", 1, kInfinity, false},
      {"minus infinity", 1, -kInfinity, false},
      {"zero", 1, 0.0, true},
      {"minus zero", 1, -0.0, false},
      {"2^53", 1, 9007199254740992.0, true},
      {"beyond 2^53", 1, 9007199254740994.0, false},
      {"largest", 1000, std::numeric_limits<double>::max(), false},
      {"smallest", 1000, std::numeric_limits<double>::denorm_min(), false},
  };
  for (const ValueRow& row : rows) {
    SCOPED_TRACE(row.name);
    const std::uint32_t ref = Ref(row.name, row.divisor);
    // A value before it that is exact: one that is not makes the whole column doubles.
    Tick(catalog_.definition(ref).tick_group(), 1, 0, {{ref, 3}});
    Tick(catalog_.definition(ref).tick_group(), 2, 0, {{ref, row.value}});
    const pb::ChunkBody body = SealOne();
    const pb::Column& column = body.tables(0).columns(0);
    ASSERT_EQ(column.integers_size(), row.is_integer ? 2 : 0);
    ASSERT_EQ(column.doubles_size(), row.is_integer ? 0 : 2);
    const double back =
        row.is_integer ? static_cast<double>(column.integers(1)) / static_cast<double>(row.divisor)
                       : column.doubles(1);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(back), std::bit_cast<std::uint64_t>(row.value));
  }
}

TEST_F(ChunkBuilderTest, AgentRule02_ClosesABodyBeforeTheMastersBounds) {
  std::vector<std::uint32_t> refs;
  for (int i = 0; i < 300; ++i) refs.push_back(Ref("series" + std::to_string(i)));
  std::uint64_t sent = 0;
  std::int64_t time = 0;
  while (!builder_.full()) {
    std::vector<RefValue> values;
    for (const std::uint32_t ref : refs)
      values.push_back({ref, 1.0 / 3 + static_cast<double>(ref)});
    sent += values.size();
    Tick(1, ++time, 1, values);
  }
  Tick(1, ++time, 1, {{refs[0], 1}});
  ++sent;
  std::uint64_t sealed = 0;
  const std::vector<ChunkBuilder::Body> bodies = builder_.Seal();
  EXPECT_EQ(bodies.size(), 2u);
  for (const ChunkBuilder::Body& body : bodies) {
    EXPECT_LT(body.bytes.size(), std::size_t{1} << 20);
    EXPECT_LT(body.span.sample_count, 65536u);
    sealed += body.span.sample_count;
  }
  EXPECT_EQ(sealed, sent);
}

TEST_F(ChunkBuilderTest, LossesOfOneKindBecomeOne) {
  pb::Loss loss;
  loss.set_cause(pb::GAP_CAUSE_RING_FULL);
  loss.set_sample_count(3);
  loss.set_first_time_us(10);
  loss.set_last_time_us(20);
  builder_.AddLoss(loss);
  loss.set_first_time_us(5);
  loss.set_last_time_us(15);
  builder_.AddLoss(loss);
  loss.set_cause(pb::GAP_CAUSE_LATE);
  builder_.AddLoss(loss);
  const pb::ChunkBody body = SealOne();
  ASSERT_EQ(body.losses_size(), 2);
  EXPECT_EQ(body.losses(0).sample_count(), 6u);
  EXPECT_EQ(body.losses(0).first_time_us(), 5);
  EXPECT_EQ(body.losses(0).last_time_us(), 20);
}

TEST_F(ChunkBuilderTest, TheCatalogKeepsItsNumbersAcrossAgents) {
  const std::uint32_t step = Ref("step");
  const std::uint32_t alone = Ref("alone", 1, {TickGroupKind::kAlone, 0});
  const std::uint32_t other_thread = Ref("step", 1, {TickGroupKind::kStep, 1});
  const std::vector<std::string> stored = catalog_.TakeNew();
  EXPECT_TRUE(catalog_.TakeNew().empty());
  SeriesCatalog later;
  for (const std::string& definition : stored) ASSERT_TRUE(later.Restore(definition));
  EXPECT_FALSE(later.Restore("no definition"));
  const SeriesSpec spec{"timing", "step", {}, "seconds", pb::SERIES_KIND_GAUGE, 1};
  EXPECT_EQ(later.Ref({TickGroupKind::kStep, 0}, spec), step);
  EXPECT_EQ(later.Ref({TickGroupKind::kStep, 1}, spec), other_thread);
  EXPECT_NE(later.definition(step).tick_group(), later.definition(other_thread).tick_group());
  // A new one goes behind all, and a step's later series joins its group.
  SeriesSpec more = spec;
  more.name = "more";
  const std::uint32_t added = later.Ref({TickGroupKind::kStep, 0}, more);
  EXPECT_GT(added, alone);
  EXPECT_EQ(later.definition(added).tick_group(), later.definition(step).tick_group());
  EXPECT_EQ(later.TakeNew().size(), 1u);
}

TEST_F(ChunkBuilderTest, TheCatalogHasABound) {
  for (std::uint32_t i = 0; i < SeriesCatalog::kRefCountMax; ++i) {
    ASSERT_NE(Ref("n" + std::to_string(i)), 0u);
  }
  EXPECT_EQ(Ref("one more"), 0u);
  EXPECT_NE(Ref("n7"), 0u);
}

}  // namespace
}  // namespace stepwell::agent
