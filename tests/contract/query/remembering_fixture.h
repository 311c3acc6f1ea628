// RememberingTest: a trial that one set of stores feeds, sweeps and reads, with a reader that remembers beside
// one that does not (`reads_`). Header only.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "storage/pg_caps_store.h"
#include "tests/contract/query/query_reads_fixture.h"
#include "tests/support/codec_vectors.h"

namespace stepwell {

// A hole of 5 samples that nobody tells us of.
inline constexpr char kForeignGap[] =
    "insert into stepwell.gaps (trial_id, writer_no, cause, metric_group, sample_count, "
    "first_time_us, last_time_us, first_sequence, last_sequence, reason) "
    "select trial_id, 1, 1, 'gpu', 5, 0, 0, 0, 0, '' from stepwell.trials";
class RememberingTest : public QueryReadsTest {
 protected:
  RememberingTest() {
    auto ingest = PgIngestStore::Open({.url = url_, .book_changes = changes_}, journal_);
    auto folds =
        PgFoldStore::Open({.url = url_, .bulk_ticks = 1, .book_changes = changes_}, journal_);
    EXPECT_TRUE(ingest.ok() && folds.ok());
    ingest_ = *std::move(ingest);
    folds_ = *std::move(folds);
    const auto owner = ingest_->AcquireOwnership({.master_id = "ours", .address = "here"});
    EXPECT_TRUE(owner.ok() && owner->epoch == kEpoch) << owner.status();
    feed_ = OpenWriter("job");
    for (int i = 0; i < 5; ++i) series_.push_back(AddSeries("gpu", absl::StrCat("value_", i)));
  }

  // A tick of every second series from `random` on; `gaps` as of its client.
  // False: it had none, and nothing was sent.
  bool Send(std::vector<Gap> gaps = {}) {
    TickTable table;
    table.tick_group = 1;
    table.times_us = {time_us_ += 1'000'000};
    table.batches = {7};
    for (std::size_t i = 0; i < series_.size(); ++i) {
      if (random_() % 2 == 0) continue;
      table.columns.push_back({.series_no = SeriesNo{series_[i]},
                               .values = {static_cast<double>(random_() % 1000)},
                               .presence = {}});
    }
    if (table.columns.empty()) return false;
    Commit(feed_, {std::move(table)}, received_us_, std::move(gaps));
    return true;
  }

  static Gap Loss(std::int64_t sample_count) {
    Gap gap;
    gap.cause = GapCause::kRingFull;
    gap.metric_group = "gpu";
    gap.sample_count = sample_count;
    gap.first_time_us = gap.last_time_us = kStartUs;
    return gap;
  }

  void CloseWriter() {
    CommitGroupRequest request;
    request.owner_epoch = kEpoch;
    request.received_time_us = kStartUs;
    WriterAdvance& advance = request.advances.emplace_back();
    advance.trial_id = trial_id_;
    advance.writer_no = feed_.opened.writer_no;
    advance.generation = feed_.opened.generation;
    advance.first_sequence = feed_.sequence + 1;
    advance.last_sequence = feed_.sequence;
    advance.closing = WriterState::kClosed;
    ASSERT_TRUE(ingest_->Commit(request).ok());
  }

  void Sweep() {
    for (bool more = true; more;) {
      const auto swept = caps_.Sweep(kEpoch, {.now_us = kStartUs + 3 * kDayUs}, kAllProjects);
      ASSERT_TRUE(swept.ok() && swept->failed.ok()) << swept.status();
      more = swept->more;
    }
  }

  const std::shared_ptr<BookChanges> changes_ = std::make_shared<BookChanges>();
  std::atomic<int> book_read_count_ = 0;
  std::atomic<int> row_read_count_ = 0;  // of charts: rows or rollups
  std::atomic<std::int64_t> owner_epoch_ = kEpoch;
  const std::shared_ptr<std::atomic<std::int64_t>> trip_count_ =
      std::make_shared<std::atomic<std::int64_t>>(0);
  PgReader remembering_reader_{{.url = url_,
                                .book_changes = changes_,
                                .watch =
                                    [this](std::span<const ReadStatement> statements) {
                                      for (const ReadStatement& each : statements) {
                                        if (each.query == ReadQuery::kTrial) ++book_read_count_;
                                        if (each.query == ReadQuery::kRows ||
                                            each.query == ReadQuery::kRollups) {
                                          ++row_read_count_;
                                        }
                                      }
                                    },
                                .round_trip_count = trip_count_}};
  QueryReads remembering_{QuerySources{.store = remembering_reader_,
                                       .heads = heads_,
                                       .clock = RealClock::Get(),
                                       .liveness = liveness_,
                                       .owner_epoch = [this] { return owner_epoch_.load(); }}};
  PgCapsStore caps_{{.url = url_, .book_changes = changes_}};
  std::mt19937_64 random_{testing::TestSeed()};
  Feed feed_;
  std::vector<std::int32_t> series_;
  std::int64_t time_us_ = kStartUs;
  std::int64_t received_us_ = kStartUs;
};

}  // namespace stepwell
