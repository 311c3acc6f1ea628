// SampleMerge: one series' rows and heads to one sequence of samples in time order. Rows are taken
// only when their first sample is due, so that as many are unpacked at once as overlap in time.
// A core. Confined to one thread.
//
//   SampleMerge merge;
//   merge.Add(heads.Run(series_no));
//   while (row_is_due(merge.NextTime())) merge.Add(run_of(row));
//   if (!merge.empty()) Use(merge.Take());
#pragma once

#include <cstdint>
#include <vector>

#include "server/sample_run.h"

namespace stepwell {

class SampleMerge {
 public:
  // REQUIRES: sorted by ComesBefore, and nothing that was taken comes after its first sample.
  void Add(SampleRun run);
  bool empty() const { return heap_.empty(); }
  // Of the next sample. REQUIRES: !empty().
  std::int64_t NextTime() const { return heap_.front().run[heap_.front().at].time_us; }
  // REQUIRES: !empty().
  Sample Take();

 private:
  struct Cursor {
    SampleRun run;
    std::size_t at = 0;
  };
  static bool ComesAfter(const Cursor& a, const Cursor& b);

  std::vector<Cursor> heap_;  // the earliest next sample in front
};

}  // namespace stepwell
