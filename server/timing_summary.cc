#include "server/timing_summary.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "base/check.h"
#include "server/scope_tree.h"

namespace stepwell {

struct TimingSummary::Half {
  std::int64_t samples = 0;
  double total = 0;
  double max = 0;
  QuantileSketch sketch;
  // Filled by Finish, when the sketch is let go.
  double p50 = 0;
  double p95 = 0;
  double p99 = 0;
  bool exact = true;

  void Add(double seconds) {
    max = samples == 0 ? seconds : std::max(max, seconds);
    ++samples;
    total += seconds;
    sketch.Add(seconds);
  }
  void Close() {
    if (sketch.count() > 0) {
      p50 = sketch.Quantile(0.50);
      p95 = sketch.Quantile(0.95);
      p99 = sketch.Quantile(0.99);
      exact = sketch.exact();
    }
    sketch = QuantileSketch();
  }
};

struct TimingSummary::Scope {
  std::int32_t rank = -1;
  std::string path;
  Labels labels;
  bool host_clock = true;
  Half in_step;
  Half outside;
  // Occurrences beyond one per step, told by `<path>.count`.
  double counted = 0;
  std::int64_t counted_steps = 0;
  int open_series = 0;
};

namespace {

constexpr char kCountSuffix[] = ".count";
// Occurrences in one step; more is no count.
constexpr double kCountMax = 1e9;
constexpr double kRoundingShare = 1e-4;

std::int32_t RankOf(const Labels& labels) {
  for (const auto& [name, value] : labels) {
    std::int32_t rank = -1;
    if (name == "rank" && absl::SimpleAtoi(value, &rank)) return rank;
  }
  return -1;
}

Labels OwnLabels(const Labels& labels) {
  Labels own;
  for (const auto& label : labels) {
    if (label.first != "rank" && label.first != "agent") own.push_back(label);
  }
  return own;
}

bool OnHostClock(const Labels& labels) {
  for (const auto& [name, value] : labels) {
    if (name == "clock" && value == "device") return false;
  }
  return true;
}

TimingLine LineOf(std::int32_t rank, const std::string& path, const Labels& labels) {
  TimingLine line;
  line.name = path;
  line.rank = rank;
  line.labels = labels;
  return line;
}

}  // namespace

TimingSummary::TimingSummary(const std::vector<Series>& series) {
  std::map<std::tuple<std::int32_t, std::string, Labels>, Scope*> known;
  for (const Series& one : series) {
    const SeriesDefinition& definition = one.definition;
    absl::string_view path = definition.key.name;
    // A scope may itself be called x.count; its kind tells.
    const bool counts =
        definition.kind != SeriesKind::kDuration && absl::ConsumeSuffix(&path, kCountSuffix);
    if (!counts && definition.kind != SeriesKind::kDuration) continue;
    const std::int32_t rank = RankOf(definition.key.labels);
    const Labels labels = OwnLabels(definition.key.labels);
    Scope*& scope = known[{rank, std::string(path), labels}];
    if (scope == nullptr) {
      scopes_.push_back(std::make_unique<Scope>());
      scope = scopes_.back().get();
      scope->rank = rank;
      scope->path = std::string(path);
      scope->labels = labels;
      scope->host_clock = OnHostClock(labels);
    }
    if (!counts) ++scope->open_series;
    feeds_[one.series_no] = {scope, counts};
  }
}

TimingSummary::~TimingSummary() = default;

void TimingSummary::Add(SeriesNo series_no, std::int32_t batch, double value) {
  const auto feed = feeds_.find(series_no);
  if (feed == feeds_.end() || std::isnan(value)) return;
  Scope& scope = *feed->second.scope;
  if (!feed->second.counts) {
    (batch >= 0 ? scope.in_step : scope.outside).Add(value);
  } else if (batch >= 0 && value >= 1 && value < kCountMax) {
    scope.counted += value;
    ++scope.counted_steps;
  }
}

void TimingSummary::Finish(SeriesNo series_no) {
  const auto feed = feeds_.find(series_no);
  if (feed == feeds_.end() || feed->second.counts) return;
  Scope& scope = *feed->second.scope;
  STEPWELL_CHECK(scope.open_series > 0);
  if (--scope.open_series > 0) return;
  scope.in_step.Close();
  scope.outside.Close();
}

std::vector<std::vector<std::int32_t>> TimingSummary::ReadOrder(std::size_t series_max) const {
  std::map<const Scope*, std::vector<std::int32_t>> series_of;
  for (const auto& [series_no, feed] : feeds_) series_of[feed.scope].push_back(Value(series_no));
  std::vector<std::vector<std::int32_t>> slices;
  std::size_t open_count = 0;  // in the last slice
  for (const std::unique_ptr<Scope>& scope : scopes_) {
    const std::vector<std::int32_t>& series = series_of[scope.get()];
    const std::size_t stays_open = scope->open_series > 1 ? 1 : 0;
    if (slices.empty() || slices.back().size() + series.size() > series_max ||
        open_count + stays_open > kOpenScopesMax) {
      slices.emplace_back();
      open_count = 0;
    }
    open_count += stays_open;
    for (const std::int32_t series_no : series) {
      if (slices.back().size() == series_max) slices.emplace_back();
      slices.back().push_back(series_no);
    }
  }
  for (std::vector<std::int32_t>& slice : slices) std::sort(slice.begin(), slice.end());
  return slices;
}

std::size_t TimingSummary::held_value_count() const {
  std::size_t count = 0;
  for (const std::unique_ptr<Scope>& scope : scopes_) {
    count += scope->in_step.sketch.held_value_count() + scope->outside.sketch.held_value_count();
  }
  return count;
}

namespace {

// Self times of the scopes of one rank, by their place in `scopes`.
template <typename Scope>
std::vector<double> SelfSeconds(const std::vector<const Scope*>& scopes) {
  std::vector<ScopeKey> keys;
  std::vector<double> self;
  for (const Scope* scope : scopes) {
    keys.push_back({scope->path, scope->labels});
    self.push_back(scope->in_step.total);
  }
  const std::vector<std::optional<std::size_t>> parents = FindParents(keys);
  for (std::size_t i = 0; i < scopes.size(); ++i) {
    if (parents[i]) self[*parents[i]] -= scopes[i]->in_step.total;
  }
  return self;
}

template <typename Half>
void FillFrom(const Half& half, TimingLine& line) {
  line.total_seconds = half.total;
  line.mean_seconds = half.total / static_cast<double>(half.samples);
  line.p50_seconds = half.p50;
  line.p95_seconds = half.p95;
  line.p99_seconds = half.p99;
  line.max_seconds = half.max;
  line.quantiles_exact = half.exact;
}

bool ShownFirst(const TimingLine& a, const TimingLine& b) {
  if (a.in_step != b.in_step) return a.in_step;
  if (a.share != b.share) return a.share > b.share;
  if (a.total_seconds != b.total_seconds) return a.total_seconds > b.total_seconds;
  return std::tie(a.name, a.labels) < std::tie(b.name, b.labels);
}

}  // namespace

std::vector<TimingLine> TimingSummary::LinesOfRank(std::int32_t rank, RankLine& rank_line) const {
  std::vector<const Scope*> shared;  // what the step's time is divided among
  std::vector<TimingLine> lines;
  const auto add_in_step = [&](const Scope& scope) -> TimingLine& {
    TimingLine line = LineOf(rank, scope.path, scope.labels);
    line.in_step = true;
    line.steps = scope.in_step.samples;
    line.count = scope.in_step.samples + std::llround(scope.counted) - scope.counted_steps;
    FillFrom(scope.in_step, line);
    return lines.emplace_back(std::move(line));
  };
  for (const std::unique_ptr<Scope>& scope : scopes_) {
    if (scope->rank != rank) continue;
    if (scope->outside.samples > 0) {
      TimingLine line = LineOf(rank, scope->path, scope->labels);
      line.count = scope->outside.samples;
      FillFrom(scope->outside, line);
      lines.push_back(std::move(line));
    }
    if (scope->in_step.samples == 0) continue;
    if (scope->path == "step" && scope->host_clock) {
      rank_line.steps += scope->in_step.samples;
      rank_line.step_seconds += scope->in_step.total;
      add_in_step(*scope);
    } else if (scope->host_clock) {
      shared.push_back(scope.get());
    } else {
      add_in_step(*scope);
    }
  }
  const std::vector<double> self = SelfSeconds(shared);
  rank_line.unaccounted_seconds = rank_line.step_seconds;
  for (std::size_t i = 0; i < shared.size(); ++i) {
    TimingLine& line = add_in_step(*shared[i]);
    line.self_seconds = self[i];
    rank_line.unaccounted_seconds -= self[i];
    if (rank_line.step_seconds > 0) line.share = self[i] / rank_line.step_seconds;
  }
  // Scopes that fill a step may be longer by what agents round durations (0.005 % of each).
  if (rank_line.unaccounted_seconds < 0 &&
      rank_line.unaccounted_seconds > -kRoundingShare * rank_line.step_seconds) {
    rank_line.unaccounted_seconds = 0;
  }
  if (rank_line.step_seconds > 0) {
    rank_line.unaccounted_share = rank_line.unaccounted_seconds / rank_line.step_seconds;
  }
  return lines;
}

TimingTable TimingSummary::Table() const {
  std::map<std::int32_t, bool> ranks;
  for (const std::unique_ptr<Scope>& scope : scopes_) {
    STEPWELL_CHECK(scope->open_series == 0);
    ranks[scope->rank] = true;
  }
  TimingTable table;
  for (const auto& [rank, seen] : ranks) {
    RankLine rank_line;
    rank_line.rank = rank;
    std::vector<TimingLine> lines = LinesOfRank(rank, rank_line);
    if (lines.empty()) continue;
    std::sort(lines.begin(), lines.end(), ShownFirst);
    table.timings.insert(table.timings.end(), std::make_move_iterator(lines.begin()),
                         std::make_move_iterator(lines.end()));
    if (rank_line.steps > 0) table.ranks.push_back(rank_line);
  }
  return table;
}

}  // namespace stepwell
