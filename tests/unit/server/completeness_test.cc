#include "server/completeness.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

constexpr std::int64_t kNow = 1'700'000'000'000'000;

WriterRecord Writer(int no, WriterState state) {
  WriterRecord writer;
  writer.writer_no = WriterNo{no};
  writer.state = state;
  return writer;
}

TEST(CompletenessTest, IsContiguousWhileEveryWriterIsAccountedFor) {
  struct Row {
    std::string name;
    WriterState state;
    std::int64_t heard_us_ago;  // -1 = never
    bool samples_missing;
    bool contiguous;
  };
  const Row rows[] = {
      {"closed", WriterState::kClosed, -1, false, true},
      {"died, but its agent closed it", WriterState::kDied, -1, false, true},
      {"heard of", WriterState::kOpen, 1'000'000, false, true},
      {"not heard of for a minute", WriterState::kOpen, 60'000'000, false, false},
      {"never heard of by this master", WriterState::kOpen, -1, false, false},
      {"samples missing", WriterState::kClosed, -1, true, false},
  };
  const SteadyTime now = SteadyTime::Now();
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    std::map<WriterNo, WriterSeen> seen;
    if (row.heard_us_ago >= 0)
      seen[WriterNo{1}] = {0, now - absl::Microseconds(row.heard_us_ago), true};
    GapList gaps;
    gaps.samples_missing = row.samples_missing;
    const std::vector<WriterRecord> writers = {Writer(1, row.state)};
    const v1::Completeness completeness = MakeCompleteness(
        {.usage = {}, .gaps = gaps, .writers = writers, .seen = seen, .now_us = kNow, .now = now});
    EXPECT_EQ(completeness.contiguous(), row.contiguous);
  }
}

TEST(CompletenessTest, CountsLedgerAndHeads) {
  const std::vector<UsageRecord> usage = {
      {.metric_group = "cpu", .sample_count = 10, .first_time_us = 1, .last_time_us = 50},
      {.metric_group = "timing", .sample_count = 5, .first_time_us = 1, .last_time_us = 70}};
  GapList gaps;
  gaps.missing_sample_count = 4;
  gaps.truncated = true;
  gaps.gaps.resize(3);
  gaps.gaps[0].metric_group = "cpu";
  gaps.gaps[1].metric_group = "timing";
  const v1::Completeness completeness = MakeCompleteness({.usage = usage,
                                                          .gaps = gaps,
                                                          .writers = {},
                                                          .seen = {},
                                                          .head_sample_count = 7,
                                                          .head_newest_time_us = 60,
                                                          .recovering = true,
                                                          .metric_group = "cpu",
                                                          .now_us = kNow});
  EXPECT_EQ(completeness.samples_held(), 22);
  EXPECT_EQ(completeness.samples_missing(), 4);
  EXPECT_EQ(completeness.gaps_size(), 2) << "the gap of the other group is left out";
  EXPECT_EQ(completeness.newest_sample_time_us(), 60);
  EXPECT_EQ(completeness.answered_time_us(), kNow);
  EXPECT_TRUE(completeness.recovering());
  EXPECT_TRUE(completeness.gaps_truncated());
}

TEST(CompletenessTest, AWriterThatIsOpenAndSilentIsLost) {
  struct Row {
    std::string name;
    WriterState state;
    std::int64_t heard_us_ago;  // -1 = never
    TrialState trial;
    v1::TrialState told;
  };
  const Row rows[] = {
      {"heard of", WriterState::kOpen, 59'000'000, TrialState::kRunning, v1::TRIAL_STATE_RUNNING},
      {"silent", WriterState::kOpen, 60'000'000, TrialState::kRunning, v1::TRIAL_STATE_LOST},
      {"silent, and its trial is told so", WriterState::kOpen, 75'000'000, TrialState::kLost,
       v1::TRIAL_STATE_LOST},
      {"back, before its trial is told so", WriterState::kOpen, 0, TrialState::kLost,
       v1::TRIAL_STATE_RUNNING},
      {"a master that has just started", WriterState::kOpen, -1, TrialState::kRunning,
       v1::TRIAL_STATE_RUNNING},
      {"lost before this master started", WriterState::kOpen, -1, TrialState::kLost,
       v1::TRIAL_STATE_LOST},
      {"closed long ago", WriterState::kClosed, 90'000'000, TrialState::kLost,
       v1::TRIAL_STATE_COMPLETED},
      {"died", WriterState::kDied, -1, TrialState::kFailed, v1::TRIAL_STATE_FAILED},
  };
  const SteadyTime now = SteadyTime::Now();
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    std::map<WriterNo, WriterSeen> seen;
    if (row.heard_us_ago >= 0) {
      seen[WriterNo{1}] = {0, now - absl::Microseconds(row.heard_us_ago), true};
    }
    EXPECT_EQ(WriterStateOf(Writer(1, row.state), seen, row.trial, now), row.told);
  }
}

}  // namespace
}  // namespace stepwell
