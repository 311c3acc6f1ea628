#include "storage/pg_read_memory.h"

#include <algorithm>

#include "storage/series_pieces.h"

namespace stepwell {
namespace {

// Much longer than a merge takes to come.
constexpr absl::Duration kLeafGoneRest = absl::Minutes(10);

// With its place in the memory.
std::size_t BytesOf(const TickVectors& ticks) {
  return 256 + ticks.times_us.size() * (sizeof(std::int64_t) + sizeof(std::int32_t));
}
std::size_t BytesOf(const RollupGrid& grid) {
  return 384 + grid.buckets.size() * 5 * sizeof(std::int64_t);
}

}  // namespace

PgReadMemory::Options PgReadMemory::Options::Of(std::size_t bytes) {
  Options options;
  const double factor = static_cast<double>(bytes) / static_cast<double>(kBytes);
  for (std::size_t Options::*part :
       {&Options::series_max, &Options::series_bytes_max, &Options::names_max,
        &Options::tick_bytes_max, &Options::grid_bytes_max, &Options::rollup_bytes_max,
        &Options::usage_max, &Options::book_bytes_max, &Options::range_bytes_max}) {
    options.*part = static_cast<std::size_t>(factor * static_cast<double>(options.*part));
  }
  return options;
}

PgReadMemory::PgReadMemory(const Options& options)
    : options_(options),
      books_(options.book_bytes_max),
      ticks_(options.tick_bytes_max),
      grids_(options.grid_bytes_max),
      rollups_(options.rollup_bytes_max),
      ranges_(options.range_bytes_max) {}

std::optional<TrialId> PgReadMemory::TrialOf(const TrialSelector& selector,
                                             const ProjectFilter& projects) const {
  absl::MutexLock lock(&mu_);
  if (selector.trial_id != 0) {
    const auto known = projects_.find(TrialId{selector.trial_id});
    if (known == projects_.end() || !projects.LetsThrough(known->second)) return std::nullopt;
    return known->first;
  }
  if (!projects.LetsThrough(selector.project)) return std::nullopt;
  const auto known = names_.find({selector.project, selector.external_id});
  if (known == names_.end()) return std::nullopt;
  return known->second;
}

PgReadMemory::AllSeries PgReadMemory::SeriesOf(TrialId trial_id) {
  absl::MutexLock lock(&mu_);
  const auto known = FindLocked(trial_id);
  if (known == series_.end()) return nullptr;
  series_.splice(series_.begin(), series_, known);
  return series_.front().series;
}

PgReadMemory::Usage PgReadMemory::UsageOf(TrialId trial_id) const {
  absl::MutexLock lock(&mu_);
  const auto known = usage_.find(trial_id);
  return known == usage_.end() ? nullptr : known->second;
}

std::optional<RememberedBook> PgReadMemory::BookOf(TrialId trial_id) {
  absl::MutexLock lock(&mu_);
  return books_.Find(trial_id);
}

PgReadMemory::Ticks PgReadMemory::TicksOf(const TickKey& key) {
  absl::MutexLock lock(&mu_);
  return ticks_.Find(key);
}

PgReadMemory::Grid PgReadMemory::GridOf(const TickKey& key) {
  absl::MutexLock lock(&mu_);
  return grids_.Find(key);
}

bool PgReadMemory::KnowsRollups(TrialId trial_id, std::int32_t step_seconds,
                                const std::vector<std::int32_t>& series_nos) const {
  absl::MutexLock lock(&mu_);
  const auto known = std::count_if(series_nos.begin(), series_nos.end(), [&](std::int32_t no) {
    return rollups_.Knows(trial_id, step_seconds, SeriesNo{no});
  });
  return known > 0 && 2 * static_cast<std::size_t>(known) >= series_nos.size();
}

std::vector<PgReadMemory::KnownRollup> PgReadMemory::RollupsOf(const std::vector<RollupKey>& keys) {
  std::vector<KnownRollup> found;
  found.reserve(keys.size());
  absl::MutexLock lock(&mu_);
  for (const RollupKey& key : keys) {
    found.push_back({grids_.Find(key.ticks), rollups_.Find(key)});
  }
  return found;
}

std::vector<RangeMemory::Shared> PgReadMemory::RangesOf(TrialId trial_id, const RangeSource& source,
                                                        const std::vector<std::int32_t>& series_nos,
                                                        const ReadMoment& moment) {
  std::vector<RangeMemory::Shared> found;
  found.reserve(series_nos.size());
  absl::MutexLock lock(&mu_);
  for (const std::int32_t series_no : series_nos) {
    RangeMemory::Shared range = ranges_.Find({trial_id, SeriesNo{series_no}, source}, moment);
    if (range == nullptr) return {};
    found.push_back(std::move(range));
  }
  return found;
}

std::int64_t PgReadMemory::age() const {
  absl::MutexLock lock(&mu_);
  return age_;
}

void PgReadMemory::NoteTrial(const TrialSelector& selector, TrialId trial_id,
                             const std::string& project, std::int64_t age) {
  absl::MutexLock lock(&mu_);
  if (age != age_) return;
  if (projects_.size() >= options_.names_max) projects_.clear();
  projects_[trial_id] = project;
  if (selector.trial_id != 0) return;
  if (names_.size() >= options_.names_max) names_.clear();
  names_[{selector.project, selector.external_id}] = trial_id;
}

PgReadMemory::AllSeries PgReadMemory::NoteSeries(TrialId trial_id, AllSeries series,
                                                 std::int64_t age) {
  const std::size_t bytes = BytesOf(*series);
  absl::MutexLock lock(&mu_);
  if (age != age_ || series->size() > options_.series_max || bytes > series_bytes_max()) {
    return nullptr;
  }
  const auto known = FindLocked(trial_id);
  if (known != series_.end() && known->series->size() >= series->size()) {
    return known->series->size() == series->size() ? known->series : nullptr;
  }
  ForgetLocked(trial_id);
  series_count_ += series->size();
  series_bytes_ += bytes;
  series_.push_front({trial_id, series, bytes});
  while (series_count_ > options_.series_max || series_bytes_ > options_.series_bytes_max) {
    ForgetLocked(series_.back().trial_id);
  }
  return series;
}

bool PgReadMemory::HasTooLargeSeries(TrialId trial_id) const {
  absl::MutexLock lock(&mu_);
  return too_large_.contains(trial_id);
}

void PgReadMemory::NoteTooLargeSeries(TrialId trial_id, std::int64_t age) {
  absl::MutexLock lock(&mu_);
  if (age != age_) return;
  if (too_large_.size() >= options_.names_max) too_large_.clear();
  too_large_.insert(trial_id);
}

void PgReadMemory::NoteUsage(TrialId trial_id, Usage usage, std::int64_t age) {
  absl::MutexLock lock(&mu_);
  if (age != age_) return;
  const std::size_t count = usage->size() + 1;
  Usage& known = usage_[trial_id];
  if (known != nullptr) usage_count_ -= known->size() + 1;
  known = std::move(usage);
  usage_count_ += count;
  if (usage_count_ <= options_.usage_max) return;
  usage_.clear();
  usage_count_ = 0;
}

void PgReadMemory::NoteBook(TrialId trial_id, RememberedBook book, std::int64_t age) {
  absl::MutexLock lock(&mu_);
  if (age == age_) books_.Note(trial_id, std::move(book));
}

void PgReadMemory::ForgetUsage() {
  absl::MutexLock lock(&mu_);
  usage_.clear();
  usage_count_ = 0;
}

void PgReadMemory::NoteTicks(const TickKey& key, Ticks ticks, std::int64_t age) {
  const std::size_t bytes = BytesOf(*ticks);
  absl::MutexLock lock(&mu_);
  if (age == age_) ticks_.Note(key, std::move(ticks), bytes);
}

void PgReadMemory::NoteGrid(const TickKey& key, Grid grid, std::int64_t age) {
  const std::size_t bytes = BytesOf(*grid);
  absl::MutexLock lock(&mu_);
  if (age == age_) grids_.Note(key, std::move(grid), bytes);
}

void PgReadMemory::NoteRollup(const RollupKey& key, RollupMemory::Shared column, std::int64_t age) {
  absl::MutexLock lock(&mu_);
  if (age == age_) rollups_.Note(key, std::move(column));
}

void PgReadMemory::NoteRanges(std::vector<std::pair<RangeKey, RangeMemory::Shared>> ranges,
                              const ReadMoment& moment, std::int64_t age) {
  absl::MutexLock lock(&mu_);
  if (age != age_) return;
  for (auto& [key, range] : ranges) ranges_.Note(key, moment, std::move(range));
}

void PgReadMemory::Clear() {
  absl::MutexLock lock(&mu_);
  ++age_;
  names_.clear();
  projects_.clear();
  series_.clear();
  series_count_ = 0;
  series_bytes_ = 0;
  too_large_.clear();
  usage_.clear();
  usage_count_ = 0;
  books_.Clear();
  ticks_.Clear();
  grids_.Clear();
  rollups_.Clear();
  ranges_.Clear();
}

bool PgReadMemory::may_name_leaves() const {
  absl::MutexLock lock(&mu_);
  return name_leaves_from_.HasPassed();
}

void PgReadMemory::NoteLeafGone() {
  absl::MutexLock lock(&mu_);
  name_leaves_from_ = SteadyTime::Now() + kLeafGoneRest;
}

std::list<PgReadMemory::Remembered>::iterator PgReadMemory::FindLocked(TrialId trial_id) {
  return std::find_if(series_.begin(), series_.end(),
                      [&](const Remembered& each) { return each.trial_id == trial_id; });
}

void PgReadMemory::ForgetLocked(TrialId trial_id) {
  const auto known = FindLocked(trial_id);
  if (known == series_.end()) return;
  series_count_ -= known->series->size();
  series_bytes_ -= known->bytes;
  series_.erase(known);
}

}  // namespace stepwell
