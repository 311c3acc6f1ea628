// QueryReads over real folds, merges and heads: whatever lies where, every read answers what a
// plain list of all committed samples says.
#include "server/query_reads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <map>
#include <random>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/worker.h"
#include "server/heads.h"
#include "storage/pg_fold_store.h"
#include "storage/pg_ingest_store.h"
#include "storage/pg_reader.h"
#include "tests/support/codec_vectors.h"
#include "tests/support/postgres.h"

namespace stepwell {
namespace {

using ::testing::HasSubstr;
using testing::TestPostgres;
using testing::TestSeed;

constexpr std::int64_t kEpoch = 1;
constexpr std::int64_t kDayUs = 86'400'000'000;
constexpr std::int64_t kStartUs = 20'000 * kDayUs + 23 * 3'600'000'000;  // an hour before midnight

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

// One trial that a test feeds chunk by chunk, and the plain list of what was committed.
class QueryReadsTest : public ::testing::Test {
 protected:
  QueryReadsTest() {
    auto ingest = PgIngestStore::Open({.url = url_}, journal_);
    EXPECT_TRUE(ingest.ok()) << ingest.status();
    ingest_ = *std::move(ingest);
    auto folds = PgFoldStore::Open({.url = url_}, journal_);
    EXPECT_TRUE(folds.ok()) << folds.status();
    folds_ = *std::move(folds);
    EXPECT_TRUE(folds_->AttachLeaves(kStartUs).ok());
  }

  struct Feed {
    OpenedWriter opened;
    std::uint64_t sequence = 0;
  };

  Feed OpenWriter(const std::string& attempt_key, bool is_sampler = false) {
    OpenWriterRequest request;
    request.trial.external_id = "run";
    request.writer = Uuid::Random();
    request.attempt_key = attempt_key;
    request.is_sampler = is_sampler;
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
                         Labels labels = {{"agent", "node"}, {"rank", "0"}}) {
    const std::vector<SeriesDefinition> definitions = {
        {{group, name, std::move(labels)}, "seconds", kind}};
    const auto numbers = ingest_->FindOrCreateSeries(trial_id_, definitions, 10'000);
    EXPECT_TRUE(numbers.ok()) << numbers.status();
    return Value(numbers->at(0));
  }

  void Commit(Feed& feed, std::vector<TickTable> tables, std::int64_t received_us) {
    CommitGroupRequest request;
    request.owner_epoch = kEpoch;
    request.received_time_us = received_us;
    WriterAdvance& advance = request.advances.emplace_back();
    advance.trial_id = trial_id_;
    advance.writer_no = feed.opened.writer_no;
    advance.generation = feed.opened.generation;
    advance.first_sequence = advance.last_sequence = ++feed.sequence;
    advance.payload = "p";
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

  void Merge(std::int32_t ripe_tick_count) {
    const auto merged = folds_->Merge(kEpoch, {.fold_no_max = heads_.MergeableFoldNo(),
                                               .ripe_tick_count = ripe_tick_count,
                                               .ripe_age_us = 3'600'000'000,
                                               .now_us = kStartUs});
    ASSERT_TRUE(merged.ok()) << merged.status();
  }

  ReadCall Call() const { return {.deadline = absl::Now() + absl::Seconds(30)}; }
  static v1::TrialRef Ref() {
    v1::TrialRef ref;
    ref.set_external_id("run");
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

  const std::string url_ = TestPostgres::Get().FreshMigratedDatabase();
  const std::shared_ptr<JournalRing> journal_ = std::make_shared<JournalRing>();
  std::unique_ptr<PgIngestStore> ingest_;
  std::unique_ptr<PgFoldStore> folds_;
  PgReader reader_{{.url = url_}};
  Heads heads_;
  NoLiveness liveness_;
  QueryReads reads_{QuerySources{reader_, heads_, RealClock::Get(), liveness_}};
  TrialId trial_id_{};
  std::vector<Point> points_;
};

// Answers against the plain list, over random histories of commits, folds and merges.
class QueryReadsDifferential : public QueryReadsTest {
 protected:
  void Begin() {
    writers_ = {OpenWriter("first"), OpenWriter("first", true), OpenWriter("second")};
    step_ = AddSeries("timing", "step", SeriesKind::kDuration);
    scope_ = AddSeries("timing", "load", SeriesKind::kDuration);
    loss_ = AddSeries("training", "loss");
    cpu_ = AddSeries("cpu", "util", SeriesKind::kGauge, {{"agent", "node"}});
  }

  // A chunk of one writer; attempt 2 does some batches over.
  void CommitRandom(std::mt19937_64& random) {
    const std::size_t which = random() % 3;
    time_us_ += static_cast<std::int64_t>(random() % 60'000'000);
    TickTable table;
    table.tick_group = 1;
    const std::size_t tick_count = 1 + random() % 40;
    std::int32_t& batch = batch_[which == 1 ? 0 : which];
    for (std::size_t i = 0; i < tick_count; ++i) {
      table.times_us.push_back(time_us_ += 1 + static_cast<std::int64_t>(random() % 500'000));
      if (which != 1) ++batch;
      table.batches.push_back(random() % 8 == 0 ? -1 : batch);
    }
    const std::vector<std::int32_t> columns = which == 1
                                                  ? std::vector<std::int32_t>{cpu_}
                                                  : std::vector<std::int32_t>{step_, scope_, loss_};
    for (const std::int32_t series_no : columns) {
      TickColumn column;
      column.series_no = SeriesNo{series_no};
      const bool holes = random() % 3 == 0;
      for (std::size_t i = 0; i < tick_count; ++i) {
        const bool present = !holes || random() % 3 != 0;
        if (holes) column.presence.push_back(present);
        if (!present) continue;
        column.values.push_back(random() % 25 == 0 ? std::nan("")
                                                   : static_cast<double>(random() % 4096) / 64);
      }
      if (!column.values.empty()) table.columns.push_back(std::move(column));
    }
    if (table.columns.empty()) return;
    // Some are received after midnight, in another leaf.
    Commit(writers_[which], {std::move(table)}, random() % 4 == 0 ? kStartUs + kDayUs : kStartUs);
  }

  void CheckSamples(std::mt19937_64& random) {
    v1::ReadSamplesRequest request;
    *request.mutable_trial() = Ref();
    request.set_page_samples(1 + static_cast<std::int32_t>(random() % 200));
    std::int64_t start = INT64_MIN;
    std::int64_t end = INT64_MAX;
    if (random() % 2 == 0) {
      start = kStartUs + static_cast<std::int64_t>(random() % 600'000'000);
      end = start + static_cast<std::int64_t>(random() % 900'000'000);
      request.mutable_time_range()->set_start_time_us(start);
      request.mutable_time_range()->set_end_time_us(end);
    }
    // Broken off now and then, and continued behind the last message.
    std::vector<Point> got;
    for (;;) {
      const auto messages = ReadMessages(request, 1 + random() % 6);
      ASSERT_FALSE(messages.empty());
      for (const auto& message : messages) Append(message, got);
      if (messages.back().has_completeness()) break;
      request.set_cursor(messages.back().cursor());
    }
    std::vector<Point> expected = InOrder();
    std::erase_if(expected, [&](const Point& point) {
      return point.time_us < start || point.time_us >= end;
    });
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i].series_no, expected[i].series_no) << i;
      ASSERT_EQ(got[i].time_us, expected[i].time_us) << i;
      ASSERT_EQ(got[i].batch, expected[i].batch) << i;
      ASSERT_EQ(got[i].attempt, expected[i].attempt) << i;
      ASSERT_EQ(std::bit_cast<std::uint64_t>(got[i].value),
                std::bit_cast<std::uint64_t>(expected[i].value))
          << i;
    }
  }

  // Batch b counts for the newest attempt whose first and last batch enclose it.
  bool Counts(const Point& point) const {
    std::map<std::int32_t, std::pair<std::int32_t, std::int32_t>> spans;
    for (const Point& other : points_) {
      if (other.batch < 0) continue;
      auto [span, added] = spans.try_emplace(other.attempt, other.batch, other.batch);
      span->second.first = std::min(span->second.first, other.batch);
      span->second.second = std::max(span->second.second, other.batch);
    }
    for (const auto& [attempt, span] : spans) {
      if (attempt > point.attempt && point.batch >= span.first && point.batch <= span.second) {
        return false;
      }
    }
    return true;
  }

  void CheckBuckets(std::mt19937_64& random) {
    v1::QueryBucketsRequest request;
    *request.mutable_trial() = Ref();
    const bool by_batch = random() % 2 == 0;
    if (by_batch) {
      request.mutable_batch_range()->set_start_batch(static_cast<std::int32_t>(random() % 50));
      if (random() % 2 == 0) request.mutable_batch_range()->set_end_batch(120);
    } else if (random() % 2 == 0) {
      request.mutable_time_range()->set_start_time_us(kStartUs + 100'000'000);
    }
    request.set_max_buckets(1 + static_cast<std::int32_t>(random() % 40));
    const auto response = reads_.QueryBuckets(request, Call());
    ASSERT_TRUE(response.ok()) << response.status();
    struct Cell {
      double min = INFINITY, max = -INFINITY, sum = 0, last = 0;
      std::uint64_t count = 0, nan_count = 0;
    };
    std::map<std::pair<std::int32_t, std::int64_t>, Cell> cells;
    for (const Point& point : InOrder()) {
      const std::int64_t place = by_batch ? point.batch : point.time_us;
      if (by_batch && (point.batch < 0 || !Counts(point))) continue;
      if (place < response->start()) continue;
      if (by_batch && request.batch_range().end_batch() != 0 &&
          place >= request.batch_range().end_batch()) {
        continue;
      }
      Cell& cell = cells[{point.series_no, (place - response->start()) / response->width()}];
      if (std::isnan(point.value)) {
        ++cell.nan_count;
        continue;
      }
      cell.min = std::min(cell.min, point.value);
      cell.max = std::max(cell.max, point.value);
      cell.sum += point.value;
      cell.last = point.value;
      ++cell.count;
    }
    std::size_t seen = 0;
    for (const auto& series : response->series()) {
      for (int i = 0; i < series.indexes_size(); ++i) {
        SCOPED_TRACE(absl::StrCat("series ", series.series_nos(0), " bucket ", series.indexes(i)));
        const auto found = cells.find({series.series_nos(0), series.indexes(i)});
        ASSERT_NE(found, cells.end());
        ++seen;
        const Cell& cell = found->second;
        ASSERT_EQ(series.counts(i), cell.count);
        ASSERT_EQ(series.nan_counts_size() > 0 ? series.nan_counts(i) : 0, cell.nan_count);
        if (cell.count == 0) continue;
        ASSERT_EQ(series.mins(i), cell.min);
        ASSERT_EQ(series.maxs(i), cell.max);
        ASSERT_NEAR(series.means(i), cell.sum / static_cast<double>(cell.count), 1e-9);
        ASSERT_EQ(series.lasts(i), cell.last);
      }
    }
    ASSERT_EQ(seen, cells.size());
  }

  void CheckLatest() {
    v1::LatestValuesRequest request;
    *request.mutable_trial() = Ref();
    const auto response = reads_.LatestValues(request, Call());
    ASSERT_TRUE(response.ok()) << response.status();
    std::map<std::int32_t, Point> newest;
    for (const Point& point : InOrder()) newest.insert_or_assign(point.series_no, point);
    ASSERT_EQ(static_cast<std::size_t>(response->values_size()), newest.size());
    for (const auto& value : response->values()) {
      ASSERT_EQ(value.time_us(), newest.at(value.series().series_no()).time_us);
    }
    ASSERT_EQ(response->completeness().samples_held(), static_cast<std::int64_t>(points_.size()));
    ASSERT_FALSE(response->completeness().contiguous()) << "no writer is being heard of";
  }

  void CheckTimings() {
    for (const int attempt : {1, 2}) {
      v1::SummarizeTimingsRequest request;
      *request.mutable_trial() = Ref();
      request.set_attempt(attempt);
      const auto response = reads_.SummarizeTimings(request, Call());
      ASSERT_TRUE(response.ok()) << response.status();
      std::map<std::pair<std::int32_t, bool>, std::pair<std::int64_t, double>> sums;
      for (const Point& point : points_) {
        if (point.attempt != attempt || std::isnan(point.value)) continue;
        auto& [count, total] = sums[{point.series_no, point.batch >= 0}];
        ++count;
        total += point.value;
      }
      double share = 0;
      for (const auto& timing : response->timings()) {
        const std::int32_t series_no = timing.name() == "step" ? step_ : scope_;
        ASSERT_EQ(timing.count(), (sums[{series_no, timing.in_step()}].first));
        ASSERT_NEAR(timing.total_seconds(), (sums[{series_no, timing.in_step()}].second), 1e-6);
        share += timing.share();
      }
      if (response->ranks_size() == 0) continue;
      ASSERT_NEAR(share + response->ranks(0).unaccounted_share(), 1, 1e-9);
    }
  }

  std::vector<Feed> writers_;
  std::int32_t step_ = 0, scope_ = 0, loss_ = 0, cpu_ = 0;
  std::int64_t time_us_ = kStartUs;
  std::int32_t batch_[3] = {-1, -1, 30};
};

TEST_F(QueryReadsDifferential, AnswersWhatAPlainListSays) {
  std::mt19937_64 random(TestSeed());
  Begin();
  for (int round = 0; round < 60 && !HasFatalFailure(); ++round) {
    SCOPED_TRACE(absl::StrCat("round ", round));
    CommitRandom(random);
    if (random() % 4 == 0) Fold();
    if (random() % 6 == 0) Merge(random() % 2 == 0 ? 1 : 100);
    if (round % 3 != 0) continue;
    CheckSamples(random);
    CheckBuckets(random);
    CheckLatest();
    CheckTimings();
  }
  // Another master: heads are empty but for what the rows say.
  Fold();
  heads_.Clear();
  CheckLatest();
}

TEST_F(QueryReadsTest, ReadsBesideFoldsAndMergesSeeEachSampleOnce) {
  Feed feed = OpenWriter("job");
  const std::int32_t series_no = AddSeries("g", "counting");
  std::atomic<bool> stop = false;
  std::atomic<int> read_count = 0;
  const auto read_on = [&] {
    std::size_t seen_before = 0;
    while (!stop) {
      v1::ReadSamplesRequest request;
      *request.mutable_trial() = Ref();
      std::vector<Point> got;
      for (const auto& message : ReadMessages(request)) Append(message, got);
      // Value i at place i: none twice, none missing.
      for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(got[i].value, static_cast<double>(i)) << "of " << got.size();
      }
      ASSERT_GE(got.size(), seen_before) << "what was read once is gone";
      seen_before = got.size();
      ++read_count;
    }
  };
  Worker one("reader", read_on);
  Worker two("reader", read_on);
  const std::uint64_t seed = TestSeed();
  std::mt19937_64 random(seed);
  double value = 0;
  for (int round = 0; (round < 150 || read_count < 40) && round < 5000; ++round) {
    TickTable table;
    table.tick_group = 1;
    TickColumn column;
    column.series_no = SeriesNo{series_no};
    for (int i = 0; i < 5; ++i) {
      table.times_us.push_back(kStartUs + static_cast<std::int64_t>(value) * 1000);
      table.batches.push_back(static_cast<std::int32_t>(value));
      column.values.push_back(value++);
    }
    table.columns.push_back(std::move(column));
    Commit(feed, {std::move(table)}, kStartUs);
    if (random() % 3 == 0) Fold();
    if (random() % 5 == 0) Merge(1);
  }
  stop = true;
  one.Join();
  two.Join();
  EXPECT_GE(read_count, 40);
}

TEST_F(QueryReadsTest, BadRequestsNameTheFieldAndWhatIsAllowed) {
  OpenWriter("job");
  struct Row {
    std::string name;
    std::function<absl::Status()> read;
    absl::StatusCode code;
    std::string says;
  };
  const auto samples = [&](auto change) {
    return [this, change] {
      v1::ReadSamplesRequest request;
      *request.mutable_trial() = Ref();
      change(request);
      return reads_.ReadSamples(request, Call(), [](const auto&) { return true; });
    };
  };
  const auto buckets = [&](auto change) {
    return [this, change] {
      v1::QueryBucketsRequest request;
      *request.mutable_trial() = Ref();
      change(request);
      return reads_.QueryBuckets(request, Call()).status();
    };
  };
  const Row rows[] = {
      {"no trial", samples([](auto& r) { r.clear_trial(); }), absl::StatusCode::kInvalidArgument,
       "trial is missing; allowed: trial_id, or external_id"},
      {"both", samples([](auto& r) { r.mutable_trial()->set_trial_id(1); }),
       absl::StatusCode::kInvalidArgument, "trial has both"},
      {"unknown name", samples([](auto& r) { r.mutable_trial()->set_external_id("x"); }),
       absl::StatusCode::kNotFound, "there is no trial 'x' in project 'default'"},
      {"NUL", samples([](auto& r) { r.mutable_trial()->set_external_id(std::string("a\0b", 3)); }),
       absl::StatusCode::kInvalidArgument, "trial.external_id holds a NUL"},
      {"range", samples([](auto& r) {
         r.mutable_time_range()->set_start_time_us(5);
         r.mutable_time_range()->set_end_time_us(4);
       }),
       absl::StatusCode::kInvalidArgument, "time_range.end_time_us is 4; allowed: 0, or"},
      {"size", samples([](auto& r) { r.set_page_samples(-1); }), absl::StatusCode::kInvalidArgument,
       "page_samples is -1; allowed: 0 (= 10000) ... 100000"},
      {"cursor", samples([](auto& r) { r.set_cursor("zzz"); }), absl::StatusCode::kInvalidArgument,
       "cursor: this is no token of ours"},
      {"batches", buckets([](auto& r) { r.mutable_batch_range()->set_start_batch(-1); }),
       absl::StatusCode::kInvalidArgument, "batch_range.start_batch is -1"},
      {"group_by", buckets([](auto& r) { r.add_group_by("rank"); }),
       absl::StatusCode::kInvalidArgument, "group_by is given without AGGREGATION_ACROSS"},
      {"selector", buckets([](auto& r) { r.add_selectors()->set_name(std::string(2000, 'x')); }),
       absl::StatusCode::kInvalidArgument, "selectors[0].name has 2000 bytes; allowed: 0 ... 1024"},
      {"attempt",
       [this] {
         v1::SummarizeTimingsRequest request;
         *request.mutable_trial() = Ref();
         request.set_attempt(9);
         return reads_.SummarizeTimings(request, Call()).status();
       },
       absl::StatusCode::kNotFound, "has no attempt 9; it has 1"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const absl::Status status = row.read();
    EXPECT_EQ(status.code(), row.code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(row.says));
  }
}

TEST_F(QueryReadsTest, TooManyBucketsAreRefusedWithTheRemedy) {
  OpenWriter("job");
  std::vector<SeriesDefinition> definitions(300);
  for (int i = 0; i < 300; ++i) definitions[i].key = {"g", absl::StrCat("s", i), {}};
  ASSERT_TRUE(ingest_->FindOrCreateSeries(trial_id_, definitions, 10'000).ok());
  v1::QueryBucketsRequest request;
  *request.mutable_trial() = Ref();
  request.mutable_time_range()->set_start_time_us(1);
  request.mutable_time_range()->set_end_time_us(1'000'000);
  request.set_max_buckets(10'000);
  EXPECT_THAT(reads_.QueryBuckets(request, Call()).status().ToString(),
              HasSubstr("RESOURCE_EXHAUSTED: 300 series times 10000 buckets is over 1000000: lower "
                        "max_buckets to 3333"));
  request.set_max_buckets(3'333);
  EXPECT_TRUE(reads_.QueryBuckets(request, Call()).ok());
}

TEST_F(QueryReadsTest, SeriesAreFoldedAcrossOrByLabels) {
  Feed feed = OpenWriter("job");
  std::vector<std::int32_t> series;
  for (const char* device : {"a", "a", "b"}) {
    series.push_back(AddSeries("gpu", "util", SeriesKind::kGauge,
                               {{"core", absl::StrCat(series.size())}, {"device", device}}));
  }
  TickTable table;
  table.tick_group = 1;
  table.times_us = {kStartUs, kStartUs + 1};
  table.batches = {0, 1};
  for (const std::int32_t series_no : series) {
    TickColumn column;
    column.series_no = SeriesNo{series_no};
    column.values = {1.0 * series_no, 10.0 * series_no};
    table.columns.push_back(column);
  }
  Commit(feed, {table}, kStartUs);
  v1::QueryBucketsRequest request;
  *request.mutable_trial() = Ref();
  request.set_max_buckets(1);
  request.set_aggregation(v1::AGGREGATION_ACROSS);
  auto response = reads_.QueryBuckets(request, Call());
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->series_size(), 1);
  EXPECT_EQ(response->series(0).counts(0), 6u);
  EXPECT_EQ(response->series(0).key().labels_size(), 0);
  EXPECT_EQ(response->series(0).series_nos_size(), 3);
  request.add_group_by("device");
  response = reads_.QueryBuckets(request, Call());
  ASSERT_EQ(response->series_size(), 2);
  EXPECT_EQ(response->series(0).key().labels().at("device"), "a");
  EXPECT_EQ(response->series(0).maxs(0), 10.0 * series[1]);
  EXPECT_EQ(response->series(1).counts(0), 2u);
}

TEST_F(QueryReadsTest, PagesGoOnWhereTheyEndedAndKnowTheirQuery) {
  OpenWriter("job");
  for (int i = 0; i < 7; ++i) AddSeries("g", absl::StrCat("s", i));
  v1::ListSeriesRequest request;
  *request.mutable_trial() = Ref();
  request.set_page_size(3);
  std::vector<std::int32_t> numbers;
  for (;;) {
    const auto page = reads_.ListSeries(request, Call());
    ASSERT_TRUE(page.ok()) << page.status();
    for (const auto& series : page->series()) numbers.push_back(series.series_no());
    if (page->next_page_token().empty()) break;
    request.set_page_token(page->next_page_token());
  }
  EXPECT_EQ(numbers, (std::vector<std::int32_t>{1, 2, 3, 4, 5, 6, 7}));
  request.mutable_selector()->set_name("s1");
  EXPECT_THAT(reads_.ListSeries(request, Call()).status().ToString(),
              HasSubstr("page_token: this token belongs to another query"));
}

TEST_F(QueryReadsTest, TrialsKnowWhatIsInHeads) {
  Feed feed = OpenWriter("job");
  const std::int32_t series_no = AddSeries("g", "s");
  TickTable table;
  table.tick_group = 1;
  table.times_us = {kStartUs, kStartUs + 5};
  table.batches = {-1, -1};
  table.columns.resize(1);
  table.columns[0].series_no = SeriesNo{series_no};
  table.columns[0].values = {1, 2};
  Commit(feed, {table}, kStartUs);
  v1::GetTrialRequest get;
  *get.mutable_trial() = Ref();
  const auto trial = reads_.GetTrial(get, Call());
  ASSERT_TRUE(trial.ok()) << trial.status();
  EXPECT_EQ(trial->trial().sample_count(), 2);
  EXPECT_EQ(trial->trial().first_sample_time_us(), kStartUs);
  EXPECT_EQ(trial->trial().last_sample_time_us(), kStartUs + 5);
  ASSERT_EQ(trial->writers_size(), 1);
  EXPECT_EQ(trial->writers(0).agent_id(), "node");
  const auto list = reads_.ListTrials({}, Call());
  ASSERT_EQ(list->trials_size(), 1);
  EXPECT_EQ(list->trials(0).sample_count(), 2);
}

}  // namespace
}  // namespace stepwell
