// Trials that are archived or deleted: who is refused, what goes, what stays.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/steady_time.h"
#include "storage/pg_reader.h"
#include "tests/contract/caps_store_test.h"

namespace stepwell {
namespace {

using testing::CapsStoreTest;
using testing::Connect;
using testing::kDayUs;
using testing::kEpoch;
using testing::kNowUs;
using testing::Samples;

class CapsTrials : public CapsStoreTest {
 protected:
  absl::Status Open(const std::string& name) {
    OpenWriterRequest request;
    request.trials = kAllProjects;
    request.trial.external_id = name;
    request.writer = Uuid::Random();
    request.owner_epoch = kEpoch;
    return ingest_->OpenWriter(request).status();
  }
  AdvanceOutcome Commit(const OpenedWriter& writer, std::uint64_t sequence) {
    const auto results = ingest_->Commit(Group({Advance(writer, sequence)}));
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? results->at(0).outcome : AdvanceOutcome::kMismatch;
  }
  // Rows of the trial in any table but trials and writers.
  std::int64_t Left(const OpenedWriter& writer) {
    std::int64_t left = 0;
    for (const std::string table :
         {"metrics", "ticks", "rollups", "rollup_ticks", "recent", "recent_ticks", "recent_rollups",
          "recent_rollup_ticks", "series", "gaps", "usage", "attempts", "writer_origins"}) {
      left += Number(absl::StrCat("select count(*) from stepwell.", table,
                                  " where trial_id = ", Value(writer.trial_id)));
    }
    return left;
  }
  static TrialSelector ById(const OpenedWriter& writer) {
    return {.trial_id = Value(writer.trial_id)};
  }
  static bool Says(const absl::Status& status, const std::string& part) {
    return std::string(status.message()).find(part) != std::string::npos;
  }
};

TEST_F(CapsTrials, ADeletedTrialIsNotThereForItsStateAndItsProfilingAndIsNoOtherMasters) {
  const OpenedWriter writer = OpenWriter("t");
  ASSERT_TRUE(ingest_->SetTrialState(writer.trial_id, TrialState::kLost, kEpoch).ok());
  ASSERT_TRUE(caps_.Delete(kEpoch, ById(writer), kAllProjects).ok());
  for (const std::int64_t epoch : {kEpoch, kEpoch - 1}) {  // the owner's, a former owner's
    SCOPED_TRACE(epoch);
    EXPECT_EQ(ingest_->SetTrialState(writer.trial_id, TrialState::kFailed, epoch).code(),
              absl::StatusCode::kNotFound);
    EXPECT_EQ(ingest_->SetProfiling(writer.trial_id, {.on = true}, epoch).status().code(),
              absl::StatusCode::kNotFound);
  }
}

TEST_F(CapsTrials, AnArchivedTrialIsReadAndNotWritten) {
  const OpenedWriter writer = OpenWriter("t"), other = OpenWriter("other");
  AddSeries(writer.trial_id, 2);
  CommitTo(writer, 1, 1);
  for (int times = 0; times < 2; ++times) {
    const auto archived = caps_.Archive(kEpoch, {.external_id = "t"}, kAllProjects, true);
    ASSERT_TRUE(archived.ok()) << archived.status();
    EXPECT_EQ(archived->trial_id, writer.trial_id);
    EXPECT_TRUE(archived->archived);
  }
  const absl::Status refused = Open("t");
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Says(refused, "is archived") && Says(refused, "out of the archive")) << refused;
  EXPECT_EQ(Commit(writer, 2), AdvanceOutcome::kFenced);
  // One whose COMMIT was in doubt as the trial was archived learns that it had happened.
  const auto again = ingest_->Commit(Group({Advance(writer, 1)}));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->front().outcome, AdvanceOutcome::kFenced);
  EXPECT_EQ(again->front().committed_sequence, 1u);
  EXPECT_EQ(Commit(other, 1), AdvanceOutcome::kCommitted);
  EXPECT_EQ(Committed(writer), 1u);
  // What was acked before is kept.
  const std::vector<TickTable> tables = {Table(2, 10)};
  ASSERT_TRUE(folds_->Fold(kEpoch, {FoldOf(writer, 0, 1, tables)}).ok());
  MergeNow();
  EXPECT_EQ(Number("select sum(sample_count)::bigint from stepwell.metrics"), 20);
  PgReader reader({.url = url_});
  EXPECT_TRUE(
      reader.FindTrial({.external_id = "t"}, kAllProjects, SteadyTime::Now() + absl::Seconds(10))
          .ok());
  ASSERT_TRUE(caps_.Archive(kEpoch, ById(writer), kAllProjects, false).ok());
  EXPECT_EQ(Commit(writer, 2), AdvanceOutcome::kCommitted);
  EXPECT_TRUE(Open("t").ok());
  EXPECT_EQ(caps_.Archive(kEpoch, {.external_id = "nobody"}, kAllProjects, true).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(CapsTrials, ADeletedTrialLeavesATombstoneAndNothingElse) {
  const OpenedWriter writer = OpenWriter("t"), other = OpenWriter("other");
  for (const OpenedWriter& each : {writer, other}) {
    AddSeries(each.trial_id, 4);
    FillAndMerge(each, 4, 600);
    const std::vector<TickTable> tables = {Table(4, 10)};
    Fill(each, tables);
  }
  SetCaps(Of(writer), {.trial_bytes = 1'000'000'000});
  const std::int64_t bytes =
      Number(absl::StrCat("select sum(byte_count + rollup_byte_count)::bigint from stepwell.usage "
                          "where trial_id = ",
                          Value(writer.trial_id)));
  const auto deleted = caps_.Delete(kEpoch, {.external_id = "t"}, kAllProjects);
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_EQ(deleted->trial_id, writer.trial_id);
  EXPECT_EQ(deleted->sample_count, 4 * 610);
  EXPECT_EQ(deleted->byte_count, bytes);
  EXPECT_TRUE(deleted->done);
  EXPECT_EQ(Left(writer), 0);
  EXPECT_EQ(Number("select count(*) from stepwell.caps"), 0);
  EXPECT_EQ(Number("select count(*) from stepwell.writers"), 2);
  const auto again = caps_.Delete(kEpoch, ById(writer), kAllProjects);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->sample_count, 0);
  EXPECT_TRUE(again->done);
  sent_.erase({Value(writer.trial_id), "gpu"});
  sent_.erase({Value(writer.trial_id), "timing"});
  ExpectNothingVanished();

  const absl::Status refused = Open("t");
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Says(refused, "was deleted") && Says(refused, "under another")) << refused;
  EXPECT_EQ(Commit(writer, 3), AdvanceOutcome::kFenced);
  EXPECT_EQ(Commit(other, 3), AdvanceOutcome::kCommitted);
  EXPECT_EQ(ingest_->FindOrCreateSeries(writer.trial_id, {SeriesDefinition{}}, 10).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(caps_.Archive(kEpoch, ById(writer), kAllProjects, true).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(caps_.Get(Of(writer), kAllProjects).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(caps_.ReadTrialCaps(writer.trial_id).status().code(), absl::StatusCode::kNotFound);
  PgReader reader({.url = url_});
  const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(20);
  EXPECT_EQ(reader.FindTrial({.external_id = "t"}, kAllProjects, deadline).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(reader.FindTrial(ById(writer), kAllProjects, deadline).status().code(),
            absl::StatusCode::kNotFound);
  const auto snapshot = reader.OpenSnapshot(deadline);
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_EQ((*snapshot)->ReadTrial(writer.trial_id).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ((*snapshot)->ListTrials({.readable_projects = kAllProjects})->trials.size(), 1u);
}

TEST_F(CapsTrials, WhatADeletedTrialHadUnderWayHoldsUpNobody) {
  const OpenedWriter writer = OpenWriter("t"), other = OpenWriter("other");
  for (const OpenedWriter& each : {writer, other}) {
    AddSeries(each.trial_id, 4);
    CommitTo(each, 1, 5);
  }
  const std::vector<TickTable> tables = {Table(4, 10)};
  ASSERT_TRUE(
      folds_->Fold(kEpoch, {FoldOf(writer, 0, 3, tables), FoldOf(other, 0, 3, tables)}).ok());
  // A merge of it has begun, and picked the other one.
  const MergeLimits limits{
      .fold_no_max = Newest(), .ripe_tick_count = 1, .now_us = kNowUs, .rows_max = 2};
  ASSERT_TRUE(folds_->Merge(kEpoch, limits).ok());
  ASSERT_TRUE(caps_.Delete(kEpoch, ById(writer), kAllProjects).ok());
  MergeAll(limits);
  EXPECT_EQ(Number("select count(*) from stepwell.recent"), 0);
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 4) << "of the other";
  // And chunks that were acked are in the heads yet.
  const auto folded =
      folds_->Fold(kEpoch, {FoldOf(writer, 3, 5, tables), FoldOf(other, 3, 5, tables)});
  ASSERT_TRUE(folded.ok()) << folded.status();
  EXPECT_EQ(folded->sample_count, 40) << "of the other";
  EXPECT_EQ(Progress(writer).folded_sequence, 5u) << "so that its journal can go";
  const auto unfinished = ingest_->ReadWriters();
  ASSERT_TRUE(unfinished.ok()) << unfinished.status();
  for (const WriterProgress& each : *unfinished) {
    EXPECT_EQ(each.trial_id, other.trial_id) << "nobody looks after it any more";
  }
  EXPECT_EQ(Left(writer), 0);
  EXPECT_GT(Left(other), 0);
}

TEST_F(CapsTrials, DeletionGoesOnWhereItWasKilled) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 1500);
  for (int day = 0; day < 2; ++day) FillAndMerge(writer, 1500, 5, kNowUs + day * kDayUs);
  const std::vector<TickTable> tables = {Table(1500, 5)};
  Fill(writer, tables);
  Run(absl::StrCat("update stepwell.trials set deleted_time = now() where trial_id = ",
                   Value(writer.trial_id)));
  // No time at all: each call does nothing; then one transaction a call, as if killed after it.
  const auto none =
      caps_.Sweep(kEpoch, {.now_us = kNowUs, .duration_max = absl::ZeroDuration()}, kAllProjects);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_TRUE(none->more);
  std::int64_t left = Left(writer);
  // Where the machine is busy they may be over before the first transaction: then there are more.
  absl::Duration duration_max = absl::Milliseconds(5);
  while (left > 0) {
    const auto swept =
        caps_.Sweep(kEpoch, {.now_us = kNowUs, .duration_max = duration_max}, kAllProjects);
    ASSERT_TRUE(swept.ok()) << swept.status();
    const std::int64_t before = std::exchange(left, Left(writer));
    ASSERT_LE(left, before);
    if (left < before) continue;
    ASSERT_LT(duration_max, absl::Minutes(1)) << left << " rows stay";
    duration_max *= 2;
  }
  EXPECT_EQ(Number("select attempt_count from stepwell.trials"), 0);
}

}  // namespace
}  // namespace stepwell
