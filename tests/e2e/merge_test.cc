// The housekeeping of a running master: what has ended is merged, and the journal is recycled.
#include <bit>
#include <numeric>
#include <random>

#include "tests/e2e/spine.h"
#include "tests/support/child_process.h"

namespace stepwell::testing {
namespace {

class MergeTest : public SpineTest {
 protected:
  std::int64_t JournalRows(int segment) {
    return QueryNumber(
        absl::StrCat("select count(*) from stepwell.journal_", segment, " where $1 = 0").c_str(),
        0);
  }
};

TEST_F(MergeTest, AClosedWritersRowsBecomeMetricsRows) {
  StartMaster({"--fold-interval", "100ms"});
  RawStream stream(*client_);
  const Uuid writer = Uuid::Random();
  const std::int64_t trial_id = Open(stream, writer, "merged").trial_id();
  const std::int64_t start_us = NowUs();
  constexpr std::uint64_t kChunkCount = 20;
  for (std::uint64_t i = 1; i <= kChunkCount; ++i) {
    std::vector<double> values(10);
    std::iota(values.begin(), values.end(), static_cast<double>(i) * 10);
    ASSERT_TRUE(stream.Send(ChunkMessage(
        writer, i, OneColumn(1, start_us + static_cast<std::int64_t>(i) * 10'000, 1000, values))));
    // So that several folds write rows of it.
    ASSERT_TRUE(stream.WaitAck(writer, i).has_value());
  }
  ASSERT_TRUE(Eventually(
      [&] {
        return QueryNumber("select count(*) from stepwell.recent where trial_id = $1", trial_id) >
               0;
      },
      absl::Seconds(20)));
  EXPECT_EQ(QueryNumber("select count(*) from stepwell.metrics where trial_id = $1", trial_id), 0)
      << "an open writer's short stretch is not ripe";

  ASSERT_TRUE(stream.Send(CloseMessage(writer, kChunkCount)));
  const auto merged = [&] {
    return QueryNumber("select count(*) from stepwell.recent where trial_id = $1", trial_id) == 0 &&
           QueryNumber("select count(*) from stepwell.recent_ticks where trial_id = $1",
                       trial_id) == 0 &&
           QueryNumber(
               "select coalesce(sum(sample_count), 0) from stepwell.metrics"
               " where trial_id = $1",
               trial_id) == kChunkCount * 10;
  };
  EXPECT_TRUE(Eventually(merged, absl::Seconds(30))) << master_->LogTail();
  EXPECT_EQ(QueryNumber("select count(*) from stepwell.metrics where trial_id = $1", trial_id), 1)
      << "one stretch is one row";
  const auto samples = Samples(trial_id, "value");
  ASSERT_EQ(samples.size(), kChunkCount * 10);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(samples[i].value, static_cast<double>(i + 10));
    EXPECT_EQ(samples[i].time_us, start_us + 10'000 + static_cast<std::int64_t>(i) * 1000);
  }
}

TEST_F(MergeTest, AFullJournalSegmentIsLeftAndEmptied) {
  StartMaster({"--fold-interval", "100ms"});
  RawStream stream(*client_);
  const Uuid writer = Uuid::Random();
  const std::int64_t trial_id = Open(stream, writer, "journal").trial_id();
  // A segment is full at 128 MiB: 7 bytes a value, as many values as a chunk takes.
  constexpr std::uint64_t kChunkCount = 330;
  constexpr std::size_t kChunkSamples = 65'536;
  constexpr std::int64_t kChunkUs = std::int64_t{kChunkSamples} * 1000;
  std::mt19937_64 random(1);
  std::vector<double> values(kChunkSamples);
  const std::int64_t start_us = NowUs() - static_cast<std::int64_t>(kChunkCount) * kChunkUs;
  for (std::uint64_t i = 1; i <= kChunkCount; ++i) {
    for (double& value : values) {
      value = std::bit_cast<double>((random() >> 12) | std::bit_cast<std::uint64_t>(1.0));
    }
    ASSERT_TRUE(stream.Send(ChunkMessage(
        writer, i,
        OneColumn(1, start_us + static_cast<std::int64_t>(i - 1) * kChunkUs, 1000, values))));
  }
  const auto ack = stream.WaitAck(writer, kChunkCount, absl::Seconds(90));
  ASSERT_TRUE(ack.has_value()) << master_->LogTail();
  EXPECT_EQ(ack->rejections_size(), 0);
  EXPECT_TRUE(Eventually([&] { return JournalRows(0) == 0; }, absl::Seconds(60)))
      << JournalRows(0) << " rows in the first segment\n"
      << master_->LogTail();
  // Commits go on in the next one.
  ASSERT_TRUE(stream.Send(
      ChunkMessage(writer, kChunkCount + 1, OneColumn(1, NowUs(), 1000, {kChunkCount + 1}))));
  ASSERT_TRUE(stream.WaitAck(writer, kChunkCount + 1).has_value());
  EXPECT_EQ(JournalRows(0), 0);
  EXPECT_GT(JournalRows(1), 0);
  ASSERT_TRUE(client_->Flush().ok());
  const std::int64_t held = QueryNumber(
      "select coalesce(sum(sample_count), 0)::bigint from"
      " (select trial_id, sample_count from stepwell.metrics"
      "  union all select trial_id, sample_count from stepwell.recent) as rows"
      " where trial_id = $1",
      trial_id);
  EXPECT_EQ(held, static_cast<std::int64_t>(kChunkCount * kChunkSamples) + 1);
}

}  // namespace
}  // namespace stepwell::testing
