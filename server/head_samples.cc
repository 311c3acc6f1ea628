#include "server/head_samples.h"

#include <algorithm>

namespace stepwell {

HeadSamples::HeadSamples(const std::vector<HeadChunkPtr>& chunks,
                         const std::vector<std::int32_t>& series_nos) {
  for (const HeadChunkPtr& chunk : chunks) {
    for (const TickTable& table : chunk->tables) {
      for (const TickColumn& column : table.columns) {
        if (!std::binary_search(series_nos.begin(), series_nos.end(), Value(column.series_no))) {
          continue;
        }
        places_[column.series_no].push_back({chunk.get(), &table, &column});
      }
    }
  }
}

SampleRun HeadSamples::Run(SeriesNo series_no) const {
  SampleRun run;
  const auto found = places_.find(series_no);
  if (found == places_.end()) return run;
  for (const Place& place : found->second) {
    AppendSamples({.times_us = place.table->times_us,
                   .batches = place.table->batches,
                   .presence = place.column->presence,
                   .values = place.column->values,
                   .writer_no = place.chunk->writer_no,
                   .attempt = place.chunk->attempt},
                  run);
  }
  SortRun(run);
  return run;
}

SeriesNo HeadSamples::SeriesFrom(SeriesNo series_no) const {
  const auto found = places_.lower_bound(series_no);
  return found == places_.end() ? SeriesNo{0} : found->first;
}

}  // namespace stepwell
