// TimingSummary: where the time of a trial's steps went, per scope and rank. It is given the
// timings series by series and keeps one entry per scope, not the samples. A core. Confined to one
// thread.
//
//   TimingSummary summary(series);
//   for (slice : summary.ReadOrder()) for (series_no : slice) {
//     summary.Add(series_no, batch, seconds);
//     summary.Finish(series_no);    // after its last sample
//   }
//   const TimingTable table = summary.Table();
//
// A scope's values are let go once all its series are finished. It has one of each agent that ran its rank,
// and those of a second agent are numbered behind all of the first, so that series are read scope by scope.
//
// A scope's self time is its total without those of the scopes directly inside it. Self times of a
// rank's in-step scopes on the host clock and the time of its steps in no scope add up to the time
// of its steps, so shares and the unaccounted share add up to 1.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/quantile_sketch.h"
#include "storage/model.h"

namespace stepwell {

struct TimingLine {
  std::string name;  // path of the scope
  std::int32_t rank = -1;
  Labels labels;  // without rank and agent
  bool in_step = false;
  std::int64_t steps = 0;  // in-step: steps in which it occurred
  std::int64_t count = 0;  // occurrences
  double total_seconds = 0;
  double self_seconds = 0;
  double share = 0;
  double mean_seconds = 0;
  double p50_seconds = 0;
  double p95_seconds = 0;
  double p99_seconds = 0;
  double max_seconds = 0;
  bool quantiles_exact = true;
};

struct RankLine {
  std::int32_t rank = -1;
  std::int64_t steps = 0;
  double step_seconds = 0;
  double unaccounted_seconds = 0;
  double unaccounted_share = 0;
};

struct TimingTable {
  // Of each rank: in-step ones first, the largest share first, then the largest total.
  std::vector<TimingLine> timings;
  std::vector<RankLine> ranks;
};

class TimingSummary {
 public:
  // Scopes of several series in one slice: so many are open at a time, with 8.4 MB each at most in steps, and as
  // much outside.
  static constexpr std::size_t kOpenScopesMax = 8;

  // All series that will come: group timing. Others are ignored.
  explicit TimingSummary(const std::vector<Series>& series);
  ~TimingSummary();

  // One sample. NaN is ignored. REQUIRES: the series was given, and is not finished.
  void Add(SeriesNo series_no, std::int32_t batch, double value);
  void Finish(SeriesNo series_no);

  // The series that it needs, each once, in slices of at most `series_max`, which are sorted: whole scopes, but for
  // one that has more. REQUIRES: none is finished, series_max > 0.
  std::vector<std::vector<std::int32_t>> ReadOrder(std::size_t series_max) const;

  // Of all scopes that are open. O(scopes).
  std::size_t held_value_count() const;

  // REQUIRES: every series is finished.
  TimingTable Table() const;

 private:
  struct Scope;  // a path with its labels and rank
  struct Half;   // its samples in steps, or outside
  struct Feed {  // what a series adds to
    Scope* scope = nullptr;
    bool counts = false;  // `<path>.count`
  };

  std::vector<TimingLine> LinesOfRank(std::int32_t rank, RankLine& rank_line) const;

  std::map<SeriesNo, Feed> feeds_;
  // By rank, path and labels.
  std::vector<std::unique_ptr<Scope>> scopes_;
};

}  // namespace stepwell
