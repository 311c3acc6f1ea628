// QueryReadsTest: one trial at a time that a test feeds chunk by chunk over real commits, folds and
// merges, with the plain list of what was committed, to hold every read against. Header only.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "base/steady_time.h"
#include "server/heads.h"
#include "server/limits.h"
#include "server/query_reads.h"
#include "storage/pg_fold_store.h"
#include "storage/pg_ingest_store.h"
#include "storage/pg_reader.h"
#include "tests/support/postgres.h"

namespace stepwell {

inline constexpr std::int64_t kEpoch = 1;
inline constexpr std::int64_t kStartUs =
    20'000 * kDayUs + 23 * 3'600'000'000;  // an hour before midnight

class NoLiveness final : public WriterLiveness {
 public:
  std::map<WriterNo, WriterSeen> Seen(TrialId) const override { return {}; }
};

struct Point {
  std::int32_t series_no;
  std::int64_t time_us;
  std::int32_t batch;
  std::int32_t attempt;
  std::int32_t writer_no;
  double value;

  auto Key() const {
    return std::tuple(series_no, time_us, writer_no, batch, std::bit_cast<std::uint64_t>(value));
  }
};

class QueryReadsTest : public ::testing::Test {
 protected:
  QueryReadsTest() {
    auto ingest = PgIngestStore::Open({.url = url_}, journal_);
    EXPECT_TRUE(ingest.ok()) << ingest.status();
    ingest_ = *std::move(ingest);
    // FoldBulk takes all for bulk.
    auto folds = PgFoldStore::Open({.url = url_, .bulk_ticks = 1}, journal_);
    EXPECT_TRUE(folds.ok()) << folds.status();
    folds_ = *std::move(folds);
    EXPECT_TRUE(folds_->AttachLeaves(kStartUs).ok());
    heads_.RecoveryStarted({}, FoldNo{});  // an owner's
  }

  struct Feed {
    OpenedWriter opened;
    std::uint64_t sequence = 0;
  };

  // Another trial is fed from now on, one that was fed before goes on; points_ are its.
  void Turn(const std::string& external_id) {
    others_[external_id_] = {trial_id_, std::move(points_)};
    external_id_ = external_id;
    std::tie(trial_id_, points_) = std::move(others_[external_id]);
  }

  Feed OpenWriter(const std::string& attempt_key, bool is_sampler = false, std::int32_t rank = 0,
                  std::int32_t world_size = 0) {
    OpenWriterRequest request;
    request.trials = kAllProjects;
    request.trial.external_id = external_id_;
    request.writer = Uuid::Random();
    request.attempt_key = attempt_key;
    request.is_sampler = is_sampler;
    request.rank = rank;
    request.world_size = world_size;
    request.agent_id = "node";
    request.owner_epoch = kEpoch;
    auto opened = ingest_->OpenWriter(request);
    EXPECT_TRUE(opened.ok()) << opened.status();
    trial_id_ = opened->trial_id;
    heads_.NoteWriter(trial_id_, opened->writer_no, 0);
    return {*opened, 0};
  }

  std::int32_t AddSeries(const std::string& group, const std::string& name,
                         SeriesKind kind = SeriesKind::kGauge,
                         Labels labels = {{"agent", "node"}, {"rank", "0"}},
                         const std::string& unit = "seconds") {
    const std::vector<SeriesDefinition> definitions = {
        {{group, name, std::move(labels)}, unit, kind}};
    const auto numbers = ingest_->FindOrCreateSeries(trial_id_, definitions, 10'000);
    EXPECT_TRUE(numbers.ok()) << numbers.status();
    return Value(numbers->at(0));
  }

  void Commit(Feed& feed, std::vector<TickTable> tables, std::int64_t received_us,
              std::vector<Gap> gaps = {}) {
    CommitGroupRequest request;
    request.owner_epoch = kEpoch;
    request.received_time_us = received_us;
    WriterAdvance& advance = request.advances.emplace_back();
    advance.trial_id = trial_id_;
    advance.writer_no = feed.opened.writer_no;
    advance.generation = feed.opened.generation;
    advance.first_sequence = advance.last_sequence = ++feed.sequence;
    advance.payload = "p";
    advance.gaps = std::move(gaps);
    const auto results = ingest_->Commit(request);
    ASSERT_TRUE(results.ok()) << results.status();
    ASSERT_EQ(results->at(0).outcome, AdvanceOutcome::kCommitted);
    auto chunk = std::make_shared<HeadChunk>();
    chunk->trial_id = trial_id_;
    chunk->writer_no = feed.opened.writer_no;
    chunk->attempt = feed.opened.attempt;
    chunk->sequence = feed.sequence;
    chunk->received_time_us = received_us;
    chunk->tables = std::move(tables);
    for (const TickTable& table : chunk->tables) {
      for (const TickColumn& column : table.columns) {
        chunk->sample_count += static_cast<std::int64_t>(column.values.size());
        Note(feed, table, column);
      }
    }
    chunk->bytes = 1000;
    heads_.Add({chunk});
  }

  void Fold() {
    const Heads::FoldPlan plan = heads_.PlanFold(std::nullopt, INT64_MAX);
    if (plan.folds.empty()) return;
    const auto folded = folds_->Fold(kEpoch, plan.folds);
    ASSERT_TRUE(folded.ok()) << folded.status();
    heads_.Folded(plan.folds, folded->fold_no);
  }

  // Straight into leaves where nobody reads, as FoldLoop does.
  void FoldBulk() {
    const Heads::FoldPlan plan = heads_.PlanFold(trial_id_, INT64_MAX);
    if (plan.folds.empty()) return;
    if (!heads_.BeginBulk(trial_id_)) return Fold();
    const auto folded = folds_->FoldBulk(kEpoch, plan.folds, 0);
    ASSERT_TRUE(folded.ok()) << folded.status();
    if (*folded) heads_.Folded(plan.folds, (*folded)->fold_no);
    heads_.EndBulk(trial_id_);
    if (!*folded) return Fold();  // in the middle of a merge
    ++bulk_fold_count_;
  }

  // The same beside readers who read all the time: those that are there leave, as `rests` asks them to, and come again.
  void FoldBulkBeside(std::atomic<bool>& rests) {
    rests = true;
    while (!heads_.BeginBulk(trial_id_)) std::this_thread::yield();
    heads_.EndBulk(trial_id_);
    rests = false;
    FoldBulk();
  }

  void Merge(std::int32_t ripe_tick_count) {
    const auto merged = folds_->Merge(kEpoch, {.fold_no_max = heads_.MergeableFoldNo(),
                                               .ripe_tick_count = ripe_tick_count,
                                               .ripe_age_us = 3'600'000'000,
                                               .now_us = kStartUs});
    ASSERT_TRUE(merged.ok()) << merged.status();
  }

  ReadCall Call() const {
    return {.deadline = SteadyTime::Now() + absl::Seconds(30), .readable_projects = kAllProjects};
  }
  static v1::TrialRef Ref(const std::string& external_id = "run") {
    v1::TrialRef ref;
    ref.set_external_id(external_id);
    return ref;
  }

  // All messages of one read; stops after `message_max` of them.
  std::vector<v1::ReadSamplesResponse> ReadMessages(const v1::ReadSamplesRequest& request,
                                                    std::size_t message_max = SIZE_MAX) {
    std::vector<v1::ReadSamplesResponse> messages;
    const absl::Status status =
        reads_.ReadSamples(request, Call(), [&](const v1::ReadSamplesResponse& message) {
          messages.push_back(message);
          return messages.size() < message_max;
        });
    EXPECT_TRUE(status.ok() || absl::IsCancelled(status)) << status;
    return messages;
  }

  static void Append(const v1::ReadSamplesResponse& message, std::vector<Point>& points) {
    for (int i = 0; i < message.values_size(); ++i) {
      points.push_back({message.series().series_no(), message.timestamps_us(i), message.batches(i),
                        message.attempts(message.attempts_size() == 1 ? 0 : i), 0,
                        message.values(i)});
    }
  }

  std::vector<Point> InOrder() const {
    std::vector<Point> points = points_;
    std::sort(points.begin(), points.end(),
              [](const Point& a, const Point& b) { return a.Key() < b.Key(); });
    return points;
  }

  void Note(const Feed& feed, const TickTable& table, const TickColumn& column) {
    std::size_t value = 0;
    for (std::size_t tick = 0; tick < table.times_us.size(); ++tick) {
      if (!column.presence.empty() && column.presence[tick] == 0) continue;
      points_.push_back({Value(column.series_no), table.times_us[tick], table.batches[tick],
                         feed.opened.attempt, Value(feed.opened.writer_no),
                         column.values[value++]});
    }
  }

  const std::string url_ = testing::TestPostgres::Get().FreshMigratedDatabase();
  const std::shared_ptr<JournalRing> journal_ = std::make_shared<JournalRing>();
  std::unique_ptr<PgIngestStore> ingest_;
  std::unique_ptr<PgFoldStore> folds_;
  PgReader reader_{{.url = url_}};
  Heads heads_;
  NoLiveness liveness_;
  std::atomic<bool> stands_by_ = false;
  QueryReads reads_{QuerySources{.store = reader_,
                                 .heads = heads_,
                                 .clock = RealClock::Get(),
                                 .liveness = liveness_,
                                 .stands_by = [this] { return stands_by_.load(); }}};
  std::string external_id_ = "run";
  TrialId trial_id_{};
  std::vector<Point> points_;
  int bulk_fold_count_ = 0;
  std::map<std::string, std::pair<TrialId, std::vector<Point>>> others_;
};

}  // namespace stepwell
