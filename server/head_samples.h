// HeadSamples: the samples of pinned heads, by series and in time order, as rows have them. Stands
// between Heads and SampleStream. Holds no copy until a series is asked for; the pin outlives it.
// Thread-compatible.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/ids.h"
#include "server/heads.h"
#include "server/sample_run.h"

namespace stepwell {

class HeadSamples {
 public:
  HeadSamples() = default;
  // Only of `series_nos`, which are sorted.
  HeadSamples(const std::vector<HeadChunkPtr>& chunks, const std::vector<std::int32_t>& series_nos);

  // Sorted; empty if there are none.
  SampleRun Run(SeriesNo series_no) const;
  // The first series at or after `series_no` that has samples; 0 = none.
  SeriesNo SeriesFrom(SeriesNo series_no) const;

 private:
  struct Place {
    const HeadChunk* chunk;
    const TickTable* table;
    const TickColumn* column;
  };
  std::map<SeriesNo, std::vector<Place>> places_;
};

}  // namespace stepwell
