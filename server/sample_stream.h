// SampleStream: the samples of a read, pulled one by one: series by series, in time order within
// each, rows and heads put together. Stands between RowCursor and the answers of QueryService.
// Bounded memory: the rows of one series that overlap in time. Confined to one thread; rows and
// heads outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/statusor.h"
#include "server/head_samples.h"
#include "server/sample_merge.h"
#include "storage/read_store.h"

namespace stepwell {

struct SeriesSample {
  SeriesNo series_no{};
  Sample sample;
};

// The samples of a row that has vectors, sorted. kDataLoss when the row contradicts itself.
[[nodiscard]] absl::StatusOr<SampleRun> RunOfRow(const StoredRow& row, std::int32_t attempt);

class SampleStream {
 public:
  struct Options {
    // Of samples, [start, end).
    std::int64_t start_us = INT64_MIN;
    std::int64_t end_us = INT64_MAX;
    // Attempt that a writer belongs to.
    std::function<std::int32_t(WriterNo)> attempt_of;
  };

  SampleStream(RowCursor& rows, const HeadSamples& heads, Options options);

  // No value = no more.
  [[nodiscard]] absl::StatusOr<std::optional<SeriesSample>> Next();

 private:
  absl::Status PeekRow();
  // Goes to the next series that has rows or heads; false = none.
  absl::StatusOr<bool> NextSeries();
  absl::Status TakeDueRows();

  RowCursor& rows_;
  const HeadSamples& heads_;
  const Options options_;
  SampleMerge merge_;
  SeriesNo series_no_{};          // of merge_; 0 = before the first
  std::optional<StoredRow> row_;  // the next one
  bool rows_ended_ = false;
};

}  // namespace stepwell
