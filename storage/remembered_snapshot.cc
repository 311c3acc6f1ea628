#include "storage/remembered_snapshot.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"

namespace stepwell {
namespace {

absl::Status NotRemembered() { return absl::UnavailableError("read: it is not remembered"); }

// Whether a row that comes without vectors says all that the grid asks for.
bool IsWholeIn(const TimeGrid& grid, const StoredRow& row) {
  if (grid.width_us <= 0 || row.nan_count != 0) return false;
  if (row.first_time_us < grid.start_us || row.last_time_us >= grid.end_us) return false;
  // A grid may be wider than int64 counts.
  const auto bucket_of = [&](std::int64_t time_us) {
    const std::uint64_t offset =
        static_cast<std::uint64_t>(time_us) - static_cast<std::uint64_t>(grid.start_us);
    return offset / static_cast<std::uint64_t>(grid.width_us);
  };
  return bucket_of(row.first_time_us) == bucket_of(row.last_time_us);
}

bool Touches(const StoredRow& row, std::int64_t start_us, std::int64_t end_us) {
  return row.last_time_us >= start_us && row.first_time_us < end_us;
}

bool SaysAll(const RememberedRange& range, const RowFilter& filter) {
  return range.fold_no_max == filter.fold_no_max &&
         std::all_of(range.rows.begin(), range.rows.end(), [&](const StoredRow& row) {
           return row.ticks != nullptr || IsWholeIn(filter.grid, row) ||
                  !Touches(row, filter.start_us, filter.end_us);
         });
}

// As a page from the database has: what is made of them takes milliseconds.
constexpr int kPageRows = 256;

// The rows of the ranges, one after the other.
class RememberedRows final : public RowCursor {
 public:
  RememberedRows(std::vector<RememberedSnapshot::Range> ranges, std::int64_t start_us,
                 std::int64_t end_us, ReadPatience& patience)
      : ranges_(std::move(ranges)), start_us_(start_us), end_us_(end_us), patience_(patience) {}

  absl::StatusOr<std::optional<StoredRow>> Next() override {
    if (++page_row_ > kPageRows) {
      page_row_ = 1;
      STEPWELL_RETURN_IF_ERROR(patience_.Ask(SteadyTime::Now()).status());
    }
    for (; range_ < ranges_.size(); ++range_, row_ = 0) {
      const std::vector<StoredRow>& rows = ranges_[range_]->rows;
      while (row_ < rows.size()) {
        const StoredRow& row = rows[row_++];
        if (Touches(row, start_us_, end_us_)) return {row};
      }
    }
    return std::nullopt;
  }

 private:
  const std::vector<RememberedSnapshot::Range> ranges_;
  const std::int64_t start_us_;
  const std::int64_t end_us_;
  ReadPatience& patience_;
  int page_row_ = 0;
  std::size_t range_ = 0;
  std::size_t row_ = 0;
};

class RememberedRollups final : public RollupCursor {
 public:
  RememberedRollups(std::vector<RememberedSnapshot::Range> ranges, const RollupFilter& filter)
      : ranges_(std::move(ranges)), start_us_(filter.start_us), end_us_(filter.end_us) {}

  absl::StatusOr<std::optional<StoredRollup>> Next() override {
    for (; range_ < ranges_.size(); ++range_, rollup_ = 0) {
      const std::vector<StoredRollup>& rollups = ranges_[range_]->rollups;
      while (rollup_ < rollups.size()) {
        const StoredRollup& rollup = rollups[rollup_++];
        if (MayHold(*rollup.grid)) return {rollup};
      }
    }
    return std::nullopt;
  }

 private:
  bool MayHold(const RollupGrid& grid) const {
    const std::int64_t step_us = INT64_C(1'000'000) * grid.step_seconds;
    return !grid.buckets.empty() && grid.last_times_us.back() >= start_us_ &&
           grid.buckets.front() * step_us < end_us_;
  }

  const std::vector<RememberedSnapshot::Range> ranges_;
  const std::int64_t start_us_;
  const std::int64_t end_us_;
  std::size_t range_ = 0;
  std::size_t rollup_ = 0;
};

}  // namespace

std::vector<RememberedSnapshot::Range> RememberedSnapshot::RangesOf(
    const RangeSource& source, const std::vector<std::int32_t>& series_nos, std::int64_t start_us,
    std::int64_t end_us) {
  asked_ = Asked::kNow;
  std::vector<Range> ranges = memory_.ranges(source, series_nos);
  const bool cover = std::all_of(ranges.begin(), ranges.end(), [&](const Range& range) {
    return range->Covers(start_us, end_us);
  });
  return cover ? std::move(ranges) : std::vector<Range>();
}

absl::StatusOr<std::unique_ptr<RowCursor>> RememberedSnapshot::ReadRows(const RowFilter& filter) {
  const bool by_batch = filter.start_batch != 0 || filter.end_batch != 0;
  if (by_batch || !filter.writer_nos.empty()) return NotRemembered();
  using Kind = RangeSource::Kind;
  std::vector<Range> ranges = RangesOf({filter.only_recent ? Kind::kRecentRows : Kind::kRows},
                                       filter.series_nos, filter.start_us, filter.end_us);
  const bool say_all = std::all_of(ranges.begin(), ranges.end(),
                                   [&](const Range& range) { return SaysAll(*range, filter); });
  if (ranges.empty() || !say_all) return NotRemembered();
  // Rollups come before rows, so that this is all, unless series are many.
  if (!std::exchange(has_asked_ahead_, true)) {
    memory_.ask_ahead();
    asked_ = Asked::kAhead;
  }
  return std::make_unique<RememberedRows>(std::move(ranges), filter.start_us, filter.end_us,
                                          patience_);
}

absl::StatusOr<std::unique_ptr<RollupCursor>> RememberedSnapshot::ReadRollups(
    const RollupFilter& filter) {
  std::vector<Range> ranges = RangesOf({RangeSource::Kind::kRollups, filter.step_seconds},
                                       filter.series_nos, filter.start_us, filter.end_us);
  if (ranges.empty()) return NotRemembered();
  return std::make_unique<RememberedRollups>(std::move(ranges), filter);
}

absl::StatusOr<bool> RememberedSnapshot::ConfirmBook(TrialId) {
  return memory_.holds(std::exchange(asked_, Asked::kNow));
}

absl::StatusOr<TrialRecord> RememberedSnapshot::ReadTrial(TrialId) { return book_->record; }

absl::StatusOr<std::vector<WriterRecord>> RememberedSnapshot::ListWriters(TrialId) {
  return book_->writers;
}

absl::StatusOr<std::vector<UsageRecord>> RememberedSnapshot::ReadUsage(TrialId) {
  return book_->usage;
}

absl::StatusOr<std::shared_ptr<const std::vector<Series>>> RememberedSnapshot::ReadAllSeries(
    TrialId, std::int32_t, const ListRoom&) {
  if (book_->series == nullptr) return NotRemembered();
  return book_->series;
}

absl::StatusOr<GapList> RememberedSnapshot::ReadGaps(TrialId, const GapFilter& filter) {
  if (book_->gaps.truncated) return NotRemembered();
  return GapsIn(book_->gaps, filter);
}

absl::StatusOr<TrialList> RememberedSnapshot::ListTrials(const TrialPage&) {
  return NotRemembered();
}

absl::StatusOr<std::vector<Series>> RememberedSnapshot::ListSeries(TrialId, const SeriesSelection&,
                                                                   SeriesNo, std::int32_t) {
  return NotRemembered();
}

absl::StatusOr<std::vector<WriterBatches>> RememberedSnapshot::ReadBatchSpans(TrialId, FoldNo) {
  return NotRemembered();
}

absl::StatusOr<std::optional<std::int64_t>> RememberedSnapshot::ReadAttemptCreated(TrialId,
                                                                                   std::int32_t) {
  return NotRemembered();
}

absl::StatusOr<std::vector<BatchesAround>> RememberedSnapshot::ReadBatchesAround(
    TrialId, const std::vector<WriterStretch>&, FoldNo) {
  return NotRemembered();
}

absl::StatusOr<std::vector<StoredLatest>> RememberedSnapshot::ReadLatest(
    TrialId, const std::vector<std::int32_t>&, FoldNo) {
  return NotRemembered();
}

GapList GapsIn(const GapList& all, const GapFilter& filter) {
  GapList list;
  list.missing_sample_count = all.missing_sample_count;
  list.samples_missing = all.samples_missing;
  const bool is_any = filter.first_time_us == 0 && filter.last_time_us == 0;
  for (const Gap& gap : all.gaps) {
    const bool is_everywhere = gap.first_time_us == 0 && gap.last_time_us == 0;
    const bool touches =
        gap.last_time_us >= filter.first_time_us && gap.first_time_us <= filter.last_time_us;
    if (!is_any && !is_everywhere && !touches) continue;
    if (filter.cause && gap.cause != *filter.cause) continue;
    const bool is_of_all = filter.metric_group.empty() || gap.metric_group.empty();
    if (!is_of_all && gap.metric_group != filter.metric_group) continue;
    list.truncated = std::ssize(list.gaps) == filter.limit;
    if (list.truncated) break;
    list.gaps.push_back(gap);
  }
  return list;
}

}  // namespace stepwell
