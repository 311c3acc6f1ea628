#include "storage/remembering_snapshot.h"

#include <algorithm>
#include <limits>

#include "base/status_macros.h"
#include "storage/remembered_snapshot.h"

namespace stepwell {

class RememberingSnapshot::Rows final : public RowCursor {
 public:
  Rows(RememberingSnapshot& snapshot, std::unique_ptr<RowCursor> rows, Reading reading)
      : snapshot_(snapshot), rows_(std::move(rows)), reading_(std::move(reading)) {}

  absl::StatusOr<std::optional<StoredRow>> Next() override {
    STEPWELL_ASSIGN_OR_RETURN(std::optional<StoredRow> row, rows_->Next());
    if (!row) {
      if (!std::exchange(ended_, true)) snapshot_.End(std::move(reading_));
      return std::nullopt;
    }
    if (auto* range = snapshot_.RangeOf(reading_, row->series_no, snapshot_.NewBytesOf(*row))) {
      range->rows.push_back(*row);
    }
    return row;
  }

 private:
  RememberingSnapshot& snapshot_;
  const std::unique_ptr<RowCursor> rows_;
  Reading reading_;
  bool ended_ = false;
};

class RememberingSnapshot::Rollups final : public RollupCursor {
 public:
  Rollups(RememberingSnapshot& snapshot, std::unique_ptr<RollupCursor> rollups, Reading reading)
      : snapshot_(snapshot), rollups_(std::move(rollups)), reading_(std::move(reading)) {}

  absl::StatusOr<std::optional<StoredRollup>> Next() override {
    STEPWELL_ASSIGN_OR_RETURN(std::optional<StoredRollup> rollup, rollups_->Next());
    if (!rollup) {
      if (!std::exchange(ended_, true)) snapshot_.End(std::move(reading_));
      return std::nullopt;
    }
    if (auto* range = snapshot_.RangeOf(reading_, rollup->series_no, BytesOf(*rollup))) {
      range->rollups.push_back(*rollup);
    }
    return rollup;
  }

 private:
  RememberingSnapshot& snapshot_;
  const std::unique_ptr<RollupCursor> rollups_;
  Reading reading_;
  bool ended_ = false;
};

RememberingSnapshot::~RememberingSnapshot() {
  if (!is_presumed_) KeepAll();
}

RememberingSnapshot::Reading RememberingSnapshot::Begin(const RangeSource& source,
                                                        const std::vector<std::int32_t>& series_nos,
                                                        std::int64_t start_us, std::int64_t end_us,
                                                        FoldNo fold_no_max) const {
  return {
      .source = source,
      .series_nos = series_nos,
      .ranges = std::vector<RememberedRange>(
          series_nos.size(), {.start_us = start_us, .end_us = end_us, .fold_no_max = fold_no_max})};
}

std::size_t RememberingSnapshot::NewBytesOf(const StoredRow& row) {
  const bool is_first = row.ticks != nullptr && ticks_.insert(row.ticks.get()).second;
  return BytesOf(row) + (is_first ? TickBytesOf(row) : 0);
}

RememberedRange* RememberingSnapshot::RangeOf(Reading& reading, SeriesNo series_no,
                                              std::size_t bytes) {
  bytes_ += bytes;
  if (bytes_ > range_bytes_max_) {
    reading.ranges.clear();
    reading.series_nos.clear();
    read_.clear();
    ticks_.clear();
    return nullptr;
  }
  while (reading.at < reading.series_nos.size() &&
         reading.series_nos[reading.at] != Value(series_no)) {
    ++reading.at;
  }
  // What comes out of order is not understood.
  if (reading.at < reading.ranges.size()) return &reading.ranges[reading.at];
  reading.ranges.clear();
  reading.series_nos.clear();
  return nullptr;
}

void RememberingSnapshot::End(Reading reading) {
  if (bytes_ <= range_bytes_max_) read_.push_back(std::move(reading));
}

void RememberingSnapshot::Widen(RememberedRange& range) const {
  std::int64_t first_us = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_us = std::numeric_limits<std::int64_t>::min();
  for (const UsageRecord& line : *usage_) {
    if (line.row_count == 0 && line.sample_count == 0 && line.rollup_byte_count == 0) continue;
    first_us = std::min(first_us, line.first_time_us);
    last_us = std::max(last_us, line.last_time_us);
  }
  if (range.start_us <= first_us) range.start_us = std::numeric_limits<std::int64_t>::min();
  if (range.end_us > last_us) range.end_us = std::numeric_limits<std::int64_t>::max();
}

void RememberingSnapshot::KeepAll() {
  Kept kept = {.trial_id = trial_id_};
  for (Reading& reading : read_) {
    for (std::size_t i = 0; i < reading.ranges.size(); ++i) {
      RememberedRange& range = reading.ranges[i];
      if (usage_) Widen(range);
      range.rows.shrink_to_fit();
      range.rollups.shrink_to_fit();
      kept.ranges.emplace_back(RangeKey{trial_id_, SeriesNo{reading.series_nos[i]}, reading.source},
                               std::make_shared<const RememberedRange>(std::move(range)));
    }
  }
  const bool has_book = record_ && writers_ && usage_ && gaps_ && series_ != nullptr &&
                        std::ssize(*series_) == record_->series_count &&
                        record_->series_count <= kBookSeriesMax;
  if (has_book) {
    kept.book = std::make_shared<const TrialBook>(TrialBook{.record = *record_,
                                                            .writers = *std::move(writers_),
                                                            .usage = *std::move(usage_),
                                                            .gaps = *std::move(gaps_),
                                                            .series = series_});
  }
  if (kept.book != nullptr || !kept.ranges.empty()) keep_(std::move(kept));
}

void RememberingSnapshot::ExpectBook(TrialId trial_id, const GapFilter&) {
  snapshot_->ExpectBook(trial_id, {});
}

std::optional<PresumedBook> RememberingSnapshot::PresumeBook(TrialId trial_id) {
  auto presumed = snapshot_->PresumeBook(trial_id);
  is_presumed_ = is_presumed_ || presumed.has_value();
  return presumed;
}

absl::StatusOr<bool> RememberingSnapshot::ConfirmBook(TrialId trial_id) {
  STEPWELL_ASSIGN_OR_RETURN(const bool held, snapshot_->ConfirmBook(trial_id));
  if (held) is_presumed_ = false;
  return held;
}

absl::StatusOr<TrialRecord> RememberingSnapshot::ReadTrial(TrialId trial_id) {
  auto record = snapshot_->ReadTrial(trial_id);
  if (record.ok() && trial_id == trial_id_) record_ = *record;
  return record;
}

absl::StatusOr<std::vector<WriterRecord>> RememberingSnapshot::ListWriters(TrialId trial_id) {
  auto writers = snapshot_->ListWriters(trial_id);
  if (writers.ok() && trial_id == trial_id_) writers_ = *writers;
  return writers;
}

absl::StatusOr<std::vector<UsageRecord>> RememberingSnapshot::ReadUsage(TrialId trial_id) {
  auto usage = snapshot_->ReadUsage(trial_id);
  if (usage.ok() && trial_id == trial_id_) usage_ = *usage;
  return usage;
}

absl::StatusOr<GapList> RememberingSnapshot::ReadGaps(TrialId trial_id, const GapFilter& filter) {
  if (trial_id != trial_id_) return snapshot_->ReadGaps(trial_id, filter);
  if (!gaps_) {
    STEPWELL_ASSIGN_OR_RETURN(gaps_, snapshot_->ReadGaps(trial_id, {}));
  }
  if (filter == GapFilter{}) return *gaps_;
  if (gaps_->truncated) return snapshot_->ReadGaps(trial_id, filter);
  return GapsIn(*gaps_, filter);
}

absl::StatusOr<std::shared_ptr<const std::vector<Series>>> RememberingSnapshot::ReadAllSeries(
    TrialId trial_id, std::int32_t series_count, const ListRoom& room) {
  auto series = snapshot_->ReadAllSeries(trial_id, series_count, room);
  if (series.ok() && trial_id == trial_id_) series_ = *series;
  return series;
}

absl::StatusOr<std::unique_ptr<RowCursor>> RememberingSnapshot::ReadRows(const RowFilter& filter) {
  STEPWELL_ASSIGN_OR_RETURN(auto rows, snapshot_->ReadRows(filter));
  const bool is_all = filter.start_batch == 0 && filter.end_batch == 0 && filter.writer_nos.empty();
  if (!is_all || filter.trial_id != trial_id_) return rows;
  using Kind = RangeSource::Kind;
  Reading reading = Begin({filter.only_recent ? Kind::kRecentRows : Kind::kRows}, filter.series_nos,
                          filter.start_us, filter.end_us, filter.fold_no_max);
  return std::make_unique<Rows>(*this, std::move(rows), std::move(reading));
}

absl::StatusOr<std::unique_ptr<RollupCursor>> RememberingSnapshot::ReadRollups(
    const RollupFilter& filter) {
  STEPWELL_ASSIGN_OR_RETURN(auto rollups, snapshot_->ReadRollups(filter));
  if (filter.trial_id != trial_id_) return rollups;
  Reading reading = Begin({RangeSource::Kind::kRollups, filter.step_seconds}, filter.series_nos,
                          filter.start_us, filter.end_us, {});
  return std::make_unique<Rollups>(*this, std::move(rollups), std::move(reading));
}

absl::StatusOr<TrialList> RememberingSnapshot::ListTrials(const TrialPage& page) {
  return snapshot_->ListTrials(page);
}

absl::StatusOr<std::vector<Series>> RememberingSnapshot::ListSeries(
    TrialId trial_id, const SeriesSelection& selection, SeriesNo after, std::int32_t limit) {
  return snapshot_->ListSeries(trial_id, selection, after, limit);
}

absl::StatusOr<std::vector<WriterBatches>> RememberingSnapshot::ReadBatchSpans(TrialId trial_id,
                                                                               FoldNo fold_no_max) {
  return snapshot_->ReadBatchSpans(trial_id, fold_no_max);
}

absl::StatusOr<std::optional<std::int64_t>> RememberingSnapshot::ReadAttemptCreated(
    TrialId trial_id, std::int32_t attempt) {
  return snapshot_->ReadAttemptCreated(trial_id, attempt);
}

absl::StatusOr<std::vector<BatchesAround>> RememberingSnapshot::ReadBatchesAround(
    TrialId trial_id, const std::vector<WriterStretch>& stretches, FoldNo fold_no_max) {
  return snapshot_->ReadBatchesAround(trial_id, stretches, fold_no_max);
}

absl::StatusOr<std::vector<StoredLatest>> RememberingSnapshot::ReadLatest(
    TrialId trial_id, const std::vector<std::int32_t>& series_nos, FoldNo fold_no_max) {
  return snapshot_->ReadLatest(trial_id, series_nos, fold_no_max);
}

}  // namespace stepwell
