#include "server/sample_stream.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "storage/vector_codec.h"

namespace stepwell {

absl::StatusOr<SampleRun> RunOfRow(const StoredRow& row, std::int32_t attempt) {
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<double> values,
                            DecodeValues(row.values, static_cast<std::size_t>(row.sample_count)));
  SampleRun run;
  AppendSamples({.times_us = row.ticks->times_us,
                 .batches = row.ticks->batches,
                 .presence = row.presence,
                 .values = values,
                 .writer_no = row.writer_no,
                 .attempt = attempt},
                run);
  SortRun(run);
  return run;
}

SampleStream::SampleStream(RowCursor& rows, const HeadSamples& heads, Options options)
    : rows_(rows), heads_(heads), options_(std::move(options)) {}

absl::Status SampleStream::PeekRow() {
  if (row_ || rows_ended_) return absl::OkStatus();
  STEPWELL_ASSIGN_OR_RETURN(row_, rows_.Next());
  rows_ended_ = !row_.has_value();
  return absl::OkStatus();
}

absl::StatusOr<bool> SampleStream::NextSeries() {
  STEPWELL_RETURN_IF_ERROR(PeekRow());
  const SeriesNo in_heads = heads_.SeriesFrom(SeriesNo{Value(series_no_) + 1});
  if (!row_ && Value(in_heads) == 0) return false;
  series_no_ = in_heads;
  if (row_ && (Value(in_heads) == 0 || row_->series_no < in_heads)) series_no_ = row_->series_no;
  if (series_no_ == in_heads) merge_.Add(heads_.Run(series_no_));
  return true;
}

absl::Status SampleStream::TakeDueRows() {
  for (;;) {
    STEPWELL_RETURN_IF_ERROR(PeekRow());
    if (!row_ || row_->series_no != series_no_) return absl::OkStatus();
    if (!merge_.empty() && row_->first_time_us > merge_.NextTime()) return absl::OkStatus();
    STEPWELL_ASSIGN_OR_RETURN(SampleRun run, RunOfRow(*row_, options_.attempt_of(row_->writer_no)));
    row_.reset();
    merge_.Add(std::move(run));
  }
}

absl::StatusOr<std::optional<SeriesSample>> SampleStream::Next() {
  for (;;) {
    STEPWELL_RETURN_IF_ERROR(TakeDueRows());
    if (merge_.empty()) {
      STEPWELL_ASSIGN_OR_RETURN(const bool more, NextSeries());
      if (!more) return std::nullopt;
      continue;
    }
    const Sample sample = merge_.Take();
    if (sample.time_us < options_.start_us || sample.time_us >= options_.end_us) continue;
    return SeriesSample{series_no_, sample};
  }
}

}  // namespace stepwell
