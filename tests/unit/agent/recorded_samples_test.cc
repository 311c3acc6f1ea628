// The times that samples get while the wall clock is steered.
#include "client/agent/recorded_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>

namespace stepwell::agent {
namespace {

using ::testing::ElementsAre;

constexpr std::uint64_t kSecondNs = 1'000'000'000;
constexpr std::int64_t kSecondUs = 1'000'000;
constexpr std::int64_t kHourUs = 3600 * kSecondUs;

class RecordedSamplesTest : public ::testing::Test {
 protected:
  void SetUp() override { samples_.EnterThread({1, spool::kNoWorker, names_}, 0); }
  void Step(std::uint64_t start_ns, std::int32_t batch) {
    samples_.OnStep({start_ns, kSecondNs / 2, batch, {}});
  }
  pb::ChunkBody Seal() {
    const std::vector<ChunkBuilder::Body> bodies = builder_.Seal();
    EXPECT_EQ(bodies.size(), 1u);
    pb::ChunkBody body;
    EXPECT_TRUE(body.ParseFromString(bodies.front().bytes));
    return body;
  }
  static std::vector<std::int64_t> TimesOf(const pb::Table& table) {
    std::vector<std::int64_t> times = {table.first_time_us()};
    for (const std::int64_t delta : table.time_deltas_us()) times.push_back(times.back() + delta);
    return times;
  }

  NameTable names_;
  SeriesCatalog catalog_;
  ChunkBuilder builder_{catalog_};
  RecordedSamples samples_{catalog_, builder_};
};

// Who captures steps is told what the rings lost, by its own anchor; what the rings do not know stays unknown.
TEST_F(RecordedSamplesTest, LossesReachACapture) {
  struct Told final : SpanSink {
    void EnterThread(const SpanThread&) override {}
    void AddSpan(std::string_view, std::int64_t, std::int64_t, std::int32_t) override {}
    void AddStep(std::int64_t, std::int64_t, std::int32_t) override {}
    void AddInstant(std::string_view, std::int64_t, std::int32_t) override {}
    void AddValue(const std::string&, const std::string&, std::int64_t, double) override {}
    void AddLoss(std::int64_t count, std::int64_t first_ns, std::int64_t last_ns) override {
      all.push_back({count, first_ns, last_ns});
    }
    std::vector<std::array<std::int64_t, 3>> all;
  } told;
  samples_.SetAnchor({5 * kSecondUs, 100 * kSecondNs});
  samples_.SetCapture(&told, {1'000 * kSecondUs, 100 * kSecondNs});
  samples_.OnLoss({EventLoss::Cause::kRingFull, 7, 112 * kSecondNs, 113 * kSecondNs});
  samples_.OnLoss({EventLoss::Cause::kNoRing, 0, 0, 0});
  samples_.SetCapture(nullptr, {});
  samples_.OnLoss({EventLoss::Cause::kRingFull, 7, 0, 0});
  using Row = std::array<std::int64_t, 3>;
  EXPECT_THAT(told.all, ElementsAre(Row{7, 1'012'000'000'000, 1'013'000'000'000},
                                    Row{1, INT64_MIN, INT64_MAX}));
}

// A series without labels, as the first name of its process.
std::string RecordOfSeries(const std::string& name) {
  std::string body;
  for (const std::string& text : {std::string("training"), name, std::string()}) {
    const auto length = static_cast<std::uint16_t>(text.size());
    body.append(reinterpret_cast<const char*>(&length), sizeof(length));
    body += text;
  }
  body.resize((body.size() + 7) / 8 * 8);
  spool::NameRecord head{};
  head.record_bytes = static_cast<std::uint32_t>(sizeof(head) + body.size());
  head.id = 1;
  head.kind = spool::NameKind::kSeries;
  head.series_kind = spool::SeriesKind::kGauge;
  head.text_count = 3;
  return std::string(reinterpret_cast<const char*>(&head), sizeof(head)) + body;
}

// Who asks for steps later asks for those of an epoch that was recorded before.
TEST_F(RecordedSamplesTest, ItsEpochsAreHeldThoughNobodyTraces) {
  names_.Extend(RecordOfSeries("epoch"));
  ASSERT_FALSE(names_.damaged());
  samples_.OnRecord(1, kSecondNs, spool::kNoBatch, 2);
  Step(2 * kSecondNs, 0);
  Step(3 * kSecondNs, 1);
  EXPECT_TRUE(samples_.TakeEpochNews());
  EXPECT_FALSE(samples_.TakeEpochNews());
  samples_.OnRecord(1, 4 * kSecondNs, spool::kNoBatch, 3);
  EXPECT_EQ(samples_.epochs().EpochAt(1), 2);
  EXPECT_EQ(samples_.epochs().EpochAt(2), 3) << "outside of a step it is of the next one";
  samples_.OnRecord(1, 5 * kSecondNs, 7, 4);
  EXPECT_EQ(samples_.epochs().EpochAt(6), 3);
  EXPECT_EQ(samples_.epochs().EpochAt(7), 4);
  EXPECT_TRUE(samples_.TakeEpochNews());
  // Neither a worker's, nor what is given up.
  samples_.EnterThread({2, 0, names_}, 0);
  samples_.OnRecord(1, 6 * kSecondNs, 9, 50);
  samples_.EnterThread({1, spool::kNoWorker, names_}, 0);
  samples_.SetGivenUp(true);
  samples_.OnRecord(1, 7 * kSecondNs, 9, 60);
  EXPECT_FALSE(samples_.TakeEpochNews());
  EXPECT_EQ(samples_.epochs().EpochAt(9), 4);
}

// Between two anchors the wall clock was set. What is converted behind the second one follows it,
// be it that it happened before; what was converted stays as it is. Durations know nothing of it.
TEST_F(RecordedSamplesTest, AgentRule12_EachIsConvertedThroughTheAnchorOfItsTime) {
  const struct {
    const char* name;
    std::int64_t set_by_us;
  } rows[] = {{"forward", kHourUs}, {"back", -kHourUs}, {"by nothing", 0}};
  constexpr std::int64_t kWallUs = 1'700'000'000 * kSecondUs;
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    samples_.SetAnchor({kWallUs, 100 * kSecondNs});
    Step(99 * kSecondNs, 0);  // before the anchor
    Step(101 * kSecondNs, 1);
    samples_.SetAnchor({kWallUs + 10 * kSecondUs + row.set_by_us, 110 * kSecondNs});
    Step(109 * kSecondNs, 2);
    Step(111 * kSecondNs + 1999, 3);
    samples_.OnLoss({EventLoss::Cause::kRingFull, 7, 112 * kSecondNs, 0});
    const pb::ChunkBody body = Seal();
    ASSERT_EQ(body.tables_size(), 1);
    EXPECT_THAT(TimesOf(body.tables(0)), ElementsAre(kWallUs - kSecondUs, kWallUs + kSecondUs,
                                                     kWallUs + 9 * kSecondUs + row.set_by_us,
                                                     kWallUs + 11 * kSecondUs + 1 + row.set_by_us));
    EXPECT_THAT(body.tables(0).columns(0).integers(),
                ElementsAre(kSecondNs / 2, kSecondNs / 2, kSecondNs / 2, kSecondNs / 2));
    ASSERT_EQ(body.losses_size(), 1);
    EXPECT_EQ(body.losses(0).first_time_us(), kWallUs + 12 * kSecondUs + row.set_by_us);
    EXPECT_EQ(body.losses(0).last_time_us(), 0);  // unknown stays unknown
  }
}

TEST_F(RecordedSamplesTest, AgentRule03_WhatIsGivenUpIsCountedAsTheSamplesThatItWouldHaveBeen) {
  const std::vector<PathTotal> paths = {{7, 2, 10, 0}, {8, 1, 20, 0}};
  samples_.SetGivenUp(true);
  samples_.OnStep({kSecondNs, kSecondNs / 2, 0, paths});
  samples_.OnOccurrence(7, kSecondNs, 10);
  samples_.OnRecord(9, 2 * kSecondNs, 0, 0.5);
  samples_.OnRecordAt(9, 3 * kSecondUs, 0, 0.5);
  const pb::ChunkBody given_up = Seal();
  EXPECT_EQ(given_up.tables_size(), 0);
  ASSERT_EQ(given_up.losses_size(), 1);
  EXPECT_EQ(given_up.losses(0).cause(), pb::GAP_CAUSE_SPOOL_LOST);
  EXPECT_EQ(given_up.losses(0).sample_count(), 7u);
  EXPECT_EQ(given_up.losses(0).first_time_us(), kSecondUs);
  EXPECT_EQ(given_up.losses(0).last_time_us(), 3 * kSecondUs);
}

// To 100 ns, and below a millisecond to the nanosecond.
TEST_F(RecordedSamplesTest, LongDurationsAreKeptToTheirGrain) {
  samples_.OnStep({kSecondNs, 12'345'678, 0, {}});
  samples_.OnStep({2 * kSecondNs, 345'678, 1, {}});
  samples_.OnOccurrence(7, kSecondNs, 98'765'432);
  const pb::ChunkBody body = Seal();
  std::multiset<std::int64_t> integers;
  for (const pb::Table& table : body.tables()) {
    for (const pb::Column& column : table.columns()) {
      integers.insert(column.integers().begin(), column.integers().end());
    }
  }
  EXPECT_EQ(integers, (std::multiset<std::int64_t>{345'678, 12'345'700, 98'765'400}));
}

}  // namespace
}  // namespace stepwell::agent
